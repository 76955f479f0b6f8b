// SPDX-License-Identifier: MIT
// A module of the process, as the dynamic linker has it: what it defines, and the slots through which it calls others.
// To be used within a callback of dl_iterate_phdr(), whose lock keeps the module where it is. Nothing here takes memory
// or another lock.
#pragma once
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace karst::interpose {

inline uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
inline bool begins_with(const char* text, const char* with) { return strncmp(text, with, strlen(with)) == 0; }

class Module {
 public:
  explicit Module(const dl_phdr_info& info) : info_(info), bias_(info.dlpi_addr) {
    for (int i = 0; i < info.dlpi_phnum; ++i)
      if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) dynamic_ = bias_ + info.dlpi_phdr[i].p_vaddr;
    // The kernel's has no slots, and other rules for its addresses.
    if (dynamic_ != 0 && !begins_with(file_name(), "linux-vdso")) read_dynamic();
  }

  const char* file_name() const {
    const char* const slash = strrchr(info_.dlpi_name, '/');
    return slash != nullptr ? slash + 1 : info_.dlpi_name;
  }
  bool is_program() const { return info_.dlpi_name[0] == '\0'; }
  bool is_libc() const { return begins_with(file_name(), "libc.so"); }
  bool is_karst() const { return begins_with(file_name(), "libkarst"); }
  uintptr_t bias() const { return bias_; }
  uintptr_t dynamic() const { return dynamic_; }

  bool has(uintptr_t address) const { return is_in(PT_LOAD, 0, address); }
  bool has_code(uintptr_t address) const { return is_in(PT_LOAD, PF_X, address); }
  bool has_data(uintptr_t address) const { return is_in(PT_LOAD, PF_W, address); }

  /// Of the symbol of this name and version, by default the one that is linked with today; null: it defines none.
  const void* definition(const char* name, const char* version) const {
    const void* found = nullptr;
    for_each_definition(name, [&](uint32_t symbol, uintptr_t address) {
      const bool is_it = version != nullptr ? is_version(definition_version(symbol), version) : !is_hidden(symbol);
      if (found == nullptr && is_it) found = reinterpret_cast<const void*>(address);
    });
    return found;
  }

  /// A reference to this name and version, null if it has none, means what lies here.
  bool defines(const char* name, const char* version, uintptr_t at) const {
    bool found = false;
    for_each_definition(name, [&](uint32_t symbol, uintptr_t address) {
      const bool is_it = version != nullptr ? is_version(definition_version(symbol), version) : !is_hidden(symbol);
      found = found || (address == at && is_it);
    });
    return found;
  }

  /// A slot, and the symbol that it is bound to.
  struct Slot {
    void** at;
    const char* name;
    const char* version;  ///< null: none is asked for
    bool is_lazy;         ///< it may lead into its own module until it is bound
  };
  template <typename F>
  void for_each_slot(F f) const {
    if (symbols_ == nullptr || strings_ == nullptr) return;
    for (int table = 0; table < 2; ++table)
      for (size_t i = 0; tables_[table] != nullptr && i < counts_[table]; ++i) {
        const ElfW(Rela)& relocation = tables_[table][i];
        const auto type = ELF64_R_TYPE(relocation.r_info);
        const auto symbol = static_cast<uint32_t>(ELF64_R_SYM(relocation.r_info));
        if (symbol == 0 || (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64)) continue;
        if (type == R_X86_64_64 && relocation.r_addend != 0) continue;
        const uintptr_t at = bias_ + relocation.r_offset;
        if (at % sizeof(void*) != 0 || !has_data(at)) continue;
        const bool is_lazy = type == R_X86_64_JUMP_SLOT && symbols_[symbol].st_shndx == SHN_UNDEF;
        f(symbol, Slot{reinterpret_cast<void**>(at), strings_ + symbols_[symbol].st_name, nullptr, is_lazy});
      }
  }

  /// Null: none is asked for.
  const char* wanted_version(uint32_t symbol) const {
    if (versions_ == nullptr || needed_ == nullptr) return nullptr;
    const unsigned number = versions_[symbol] & kVersionNumber;
    if (number <= VER_NDX_GLOBAL) return nullptr;
    const auto* need = needed_;
    for (size_t i = 0; i < needed_count_; ++i) {
      const auto* of = after<ElfW(Vernaux)>(need, need->vn_aux);
      for (unsigned j = 0; j < need->vn_cnt; ++j, of = after<ElfW(Vernaux)>(of, of->vna_next))
        if ((of->vna_other & kVersionNumber) == number) return strings_ + of->vna_name;
      need = after<ElfW(Verneed)>(need, need->vn_next);
    }
    return nullptr;
  }

 private:
  static constexpr unsigned kVersionNumber = 0x7fff;
  static constexpr unsigned kHidden = 0x8000;

  template <typename To>
  static const To* after(const void* from, size_t bytes) {
    return reinterpret_cast<const To*>(static_cast<const char*>(from) + bytes);
  }

  bool is_in(ElfW(Word) type, ElfW(Word) rights, uintptr_t address) const {
    for (int i = 0; i < info_.dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info_.dlpi_phdr[i];
      if (part.p_type == type && (part.p_flags & rights) == rights && address - bias_ - part.p_vaddr < part.p_memsz)
        return true;
    }
    return false;
  }

  void read_dynamic() {
    for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(dynamic_); entry->d_tag != DT_NULL; ++entry) {
      const uintptr_t value = entry->d_un.d_val;
      // glibc has made addresses of most of them.
      const uintptr_t address = value < bias_ ? value + bias_ : value;
      switch (entry->d_tag) {
        case DT_JMPREL:
          tables_[0] = reinterpret_cast<const ElfW(Rela)*>(address);
          break;
        case DT_PLTRELSZ:
          counts_[0] = value / sizeof(ElfW(Rela));
          break;
        case DT_RELA:
          tables_[1] = reinterpret_cast<const ElfW(Rela)*>(address);
          break;
        case DT_RELASZ:
          counts_[1] = value / sizeof(ElfW(Rela));
          break;
        case DT_SYMTAB:
          symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
          break;
        case DT_STRTAB:
          strings_ = reinterpret_cast<const char*>(address);
          break;
        case DT_GNU_HASH:
          hash_ = reinterpret_cast<const uint32_t*>(address);
          break;
        case DT_VERSYM:
          versions_ = reinterpret_cast<const ElfW(Half)*>(address);
          break;
        case DT_VERNEED:
          needed_ = reinterpret_cast<const ElfW(Verneed)*>(address);
          break;
        case DT_VERNEEDNUM:
          needed_count_ = value;
          break;
        case DT_VERDEF:
          defined_ = reinterpret_cast<const ElfW(Verdef)*>(address);
          break;
        case DT_VERDEFNUM:
          defined_count_ = value;
          break;
        default:
          break;
      }
    }
  }

  /// Functions that are chosen at run time (IFUNC) are left out.
  template <typename F>
  void for_each_definition(const char* name, F f) const {
    if (hash_ == nullptr || symbols_ == nullptr || strings_ == nullptr || hash_[0] == 0) return;
    const uint32_t buckets = hash_[0], first = hash_[1], filter_words = hash_[2];
    const uint32_t* const bucket = hash_ + 4 + size_t{2} * filter_words;
    const uint32_t* const chain = bucket + buckets;
    uint32_t hash = 5381;
    for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    uint32_t symbol = bucket[hash % buckets];
    if (symbol < first) return;
    for (;; ++symbol) {
      const ElfW(Sym)& found = symbols_[symbol];
      const auto type = ELF64_ST_TYPE(found.st_info);
      if ((chain[symbol - first] | 1) == (hash | 1) && found.st_shndx != SHN_UNDEF && type != STT_GNU_IFUNC &&
          type != STT_TLS && strcmp(strings_ + found.st_name, name) == 0)
        f(symbol, bias_ + found.st_value);
      if ((chain[symbol - first] & 1) != 0) return;
    }
  }

  /// Another one of this name is linked with today.
  bool is_hidden(uint32_t symbol) const { return versions_ != nullptr && (versions_[symbol] & kHidden) != 0; }
  /// A module without versions stands for each of them.
  static bool is_version(const char* has, const char* wanted) { return has == nullptr || strcmp(has, wanted) == 0; }
  const char* definition_version(uint32_t symbol) const {
    if (versions_ == nullptr || defined_ == nullptr) return nullptr;
    const unsigned number = versions_[symbol] & kVersionNumber;
    if (number <= VER_NDX_GLOBAL) return nullptr;
    const auto* definition = defined_;
    for (size_t i = 0; i < defined_count_; ++i) {
      if ((definition->vd_ndx & kVersionNumber) == number)
        return strings_ + after<ElfW(Verdaux)>(definition, definition->vd_aux)->vda_name;
      definition = after<ElfW(Verdef)>(definition, definition->vd_next);
    }
    return nullptr;
  }

  const dl_phdr_info& info_;
  uintptr_t bias_;
  uintptr_t dynamic_ = 0;
  const ElfW(Rela) * tables_[2] = {};
  size_t counts_[2] = {};
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const uint32_t* hash_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;
  const ElfW(Verneed) * needed_ = nullptr;
  const ElfW(Verdef) * defined_ = nullptr;
  size_t needed_count_ = 0, defined_count_ = 0;
};

}  // namespace karst::interpose
