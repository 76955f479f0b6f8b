// SPDX-License-Identifier: MIT
// Locks in the static data of a module: where such a lock is first met, its place in the module's file is told, as the
// name of a lock (format/lock.h). karst takes the variable's name from that file.
//
//   begin()   in the library's constructor
//   meet()    any context; keeps errno. Takes no lock: the loader's may be held by a thread that waits for this one
#pragma once
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/lock.h"
#include "karst/karst.h"

namespace karst::interpose {

class StaticLocks {
 public:
  void begin() {
    // glibc 2.35; where it is not there, locks have addresses alone.
    find_ = reinterpret_cast<Find>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    uint64_t (*program)(char*, uint64_t);
    KARST_FIND_(program, program);
    if (program == nullptr || program(program_, sizeof program_) == 0) program_[0] = '\0';
  }

  __attribute__((always_inline)) void meet(const void* lock) {
    const auto address = reinterpret_cast<uintptr_t>(lock);
    if (__builtin_expect(__atomic_load_n(&latest_[slot_of(address)], __ATOMIC_RELAXED) != address, 0))
      meet_first(address);
  }

 private:
  /// What glibc's _dl_find_object() fills in, in its first words.
  struct Object {
    unsigned long long flags;
    char* begin;
    char* end;
    link_map* map;
    void* rest[12];
  };
  using Find = int (*)(void* address, Object* object);
  static constexpr unsigned kLatest = 1024;  // addresses that were met, of any kind
  static constexpr unsigned kMost = 1024;    // locks that are told
  static constexpr unsigned kMostId = 32;    // bytes of a build-id

  static unsigned slot_of(uintptr_t address) { return static_cast<unsigned>(address * 0x9E3779B97F4A7C15U >> 54); }

  __attribute__((noinline, cold)) void meet_first(uintptr_t address) {
    __atomic_store_n(&latest_[slot_of(address)], address, __ATOMIC_RELAXED);
    Object object;
    if (find_ == nullptr || find_(reinterpret_cast<void*>(address), &object) != 0) return;
    unsigned char id[kMostId];
    unsigned id_size = 0;
    if (is_in_data(object, address, id, id_size) && claim(address)) tell(object, address, id, id_size);
  }

  /// True once for each address, for kMost of them.
  bool claim(uintptr_t address) {
    for (unsigned i = 0; i < kMost; ++i) {
      uintptr_t* const told = &told_[(slot_of(address) + i) % kMost];
      uintptr_t there = 0;
      if (__atomic_compare_exchange_n(told, &there, address, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return true;
      if (there == address) return false;
    }
    return false;
  }

  /// The module's headers lie at its begin. Also finds its build-id there.
  static bool is_in_data(const Object& object, uintptr_t address, unsigned char* id, unsigned& id_size) {
    const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(object.begin);
    if (object.end - object.begin < 4096 || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff > 1024 || header->e_phnum > 40)
      return false;
    const auto* const segments = reinterpret_cast<const ElfW(Phdr)*>(object.begin + header->e_phoff);
    const uintptr_t in_file = address - object.map->l_addr;
    bool found = false;
    for (unsigned i = 0; i < header->e_phnum; ++i) {
      const ElfW(Phdr)& segment = segments[i];
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0)
        found |= in_file - segment.p_vaddr < segment.p_memsz;
      if (segment.p_type == PT_NOTE && id_size == 0) find_id(object, segment, id, id_size);
    }
    return found;
  }

  static void find_id(const Object& object, const ElfW(Phdr) & segment, unsigned char* id, unsigned& id_size) {
    const char* const begin = reinterpret_cast<const char*>(object.map->l_addr + segment.p_vaddr);
    if (begin < object.begin || begin > object.end || segment.p_memsz > static_cast<size_t>(object.end - begin)) return;
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= segment.p_memsz;) {
      const auto* const note = reinterpret_cast<const ElfW(Nhdr)*>(begin + at);
      const size_t name = at + sizeof *note;
      const size_t bytes = name + (note->n_namesz + size_t{3}) / 4 * 4;
      at = bytes + (note->n_descsz + size_t{3}) / 4 * 4;
      if (at > segment.p_memsz) return;
      if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 || memcmp(begin + name, "GNU", 4) != 0) continue;
      if (note->n_descsz > kMostId) return;
      id_size = note->n_descsz;
      memcpy(id, begin + bytes, id_size);
      return;
    }
  }

  void tell(const Object& object, uintptr_t address, const unsigned char* id, unsigned id_size) const {
    const char* path = object.map->l_name;
    if (path == nullptr || *path == '\0') path = program_;
    const char* const slash = strrchr(path, '/');
    char name[2 + 16 + 1 + 200 + 3 + 16 + 1];
    char* to = put_number(name, address);
    *to++ = ' ';
    for (const char *from = slash != nullptr ? slash + 1 : path, *end = to + 200; *from != '\0' && to != end;)
      *to++ = *from++;
    *to++ = '+';
    *put_number(to, address - object.map->l_addr) = '\0';
    char values[sizeof format::kStaticLock + 2 * kMostId];
    memcpy(values, format::kStaticLock, sizeof format::kStaticLock);
    char* digit = values + sizeof format::kStaticLock - 1;
    for (unsigned i = 0; i < id_size; ++i) {
      *digit++ = kDigits[id[i] >> 4];
      *digit++ = kDigits[id[i] & 15];
    }
    void (*enter)(const char*, const char*, const char*, uint32_t);
    KARST_FIND_(enter, fact);
    if (enter != nullptr) enter(name, path, values, static_cast<uint32_t>(digit - values));
  }

  static char* put_number(char* to, uintptr_t number) {
    *to++ = '0';
    *to++ = 'x';
    int shift = 60;
    while (shift > 0 && number >> shift == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) *to++ = kDigits[number >> shift & 15];
    return to;
  }

  static constexpr char kDigits[] = "0123456789abcdef";
  Find find_;
  uintptr_t latest_[kLatest];
  uintptr_t told_[kMost];
  char program_[1000];
};

}  // namespace karst::interpose
