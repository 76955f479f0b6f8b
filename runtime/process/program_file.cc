// SPDX-License-Identifier: MIT
#include "runtime/process/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using format::StartsHow;

namespace {

struct Identity {
  std::uint64_t device;
  std::uint64_t inode;
};
Identity g_loader;

bool identify(const char* path, Identity& identity) {
  struct stat status {};
  if (sys::call(SYS_newfstatat, AT_FDCWD, sys::word(path), sys::word(&status), 0) != 0) return false;
  identity = {status.st_dev, status.st_ino};
  return true;
}

std::size_t read_at(int file, void* to, std::size_t size, std::uint64_t offset) {
  const long n = sys::call(SYS_pread64, file, sys::word(to), static_cast<long>(size), static_cast<long>(offset));
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

class OpenFile {
 public:
  explicit OpenFile(const char* path)
      : fd_(static_cast<int>(sys::call(SYS_openat, AT_FDCWD, sys::word(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0))) {}
  ~OpenFile() {
    if (fd_ >= 0) sys::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// What of an ELF file's segments is looked at.
struct Segments {
  ElfW(Phdr) interpreter;
  ElfW(Phdr) dynamic;
  ElfW(Phdr) loads[6];
  std::uint32_t load_count;

  /// Where in the file an address is; 0: nowhere.
  std::uint64_t offset_of(std::uint64_t address) const {
    for (std::uint32_t i = 0; i < load_count; ++i)
      if (address >= loads[i].p_vaddr && address - loads[i].p_vaddr < loads[i].p_filesz)
        return address - loads[i].p_vaddr + loads[i].p_offset;
    return 0;
  }
};

bool find_segments(int file, const ElfW(Ehdr) & head, Segments& found) {
  constexpr std::uint32_t kMost = 64;
  constexpr std::uint32_t kAtOnce = 8;
  if (head.e_phentsize != sizeof(ElfW(Phdr))) return false;
  ElfW(Phdr) part[kAtOnce];
  for (std::uint32_t i = 0; i < head.e_phnum && i < kMost; i += kAtOnce) {
    const std::size_t n = read_at(file, part, sizeof part, head.e_phoff + i * sizeof part[0]) / sizeof part[0];
    for (std::uint32_t k = 0; k < n && i + k < head.e_phnum; ++k) {
      if (part[k].p_type == PT_INTERP) found.interpreter = part[k];
      if (part[k].p_type == PT_DYNAMIC) found.dynamic = part[k];
      if (part[k].p_type == PT_LOAD && found.load_count < sizeof found.loads / sizeof found.loads[0])
        found.loads[found.load_count++] = part[k];
    }
  }
  return true;
}

bool is_elf(const ElfW(Ehdr) & head) {
  return head.e_ident[0] == ELFMAG0 && head.e_ident[1] == ELFMAG1 && head.e_ident[2] == ELFMAG2 &&
         head.e_ident[3] == ELFMAG3;
}

bool is_ours(const ElfW(Ehdr) & head) {
  return head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_ident[EI_DATA] == ELFDATA2LSB && head.e_machine == EM_X86_64;
}

/// Which of the names a table of strings has.
struct LoaderNames {
  bool one_library = false;
  bool least_glibc = false;
  bool any_glibc = false;
  bool opens_libraries = false;
};

/// Calls visit(entry) for the entries of its dynamic section.
template <typename Visit>
void for_each_entry(int file, const Segments& segments, Visit visit) {
  constexpr std::uint64_t kMostEntries = 1024;
  ElfW(Dyn) part[16];
  const std::uint64_t count = segments.dynamic.p_filesz / sizeof part[0];
  for (std::uint64_t i = 0; i < count && i < kMostEntries;) {
    const std::size_t n =
        read_at(file, part, sizeof part, segments.dynamic.p_offset + i * sizeof part[0]) / sizeof part[0];
    if (n == 0) return;
    for (std::size_t k = 0; k < n && i < count; ++k, ++i) {
      if (part[k].d_tag == DT_NULL) return;
      visit(part[k]);
    }
  }
}

bool needs_libasan(int file, const Segments& segments) {
  std::uint64_t texts = 0;
  for_each_entry(file, segments, [&](const ElfW(Dyn) & entry) {
    if (entry.d_tag == DT_STRTAB) texts = segments.offset_of(entry.d_un.d_ptr);
  });
  bool needs = false;
  for_each_entry(file, segments, [&](const ElfW(Dyn) & entry) {
    char name[11] = {};
    if (texts == 0 || entry.d_tag != DT_NEEDED) return;
    read_at(file, name, sizeof name - 1, texts + entry.d_un.d_val);
    needs = needs || equal(name, "libasan.so");
  });
  return needs;
}

LoaderNames names_of_loader(int file, const Segments& segments) {
  constexpr std::uint64_t kMostBytes = 1 << 16;
  constexpr std::size_t kKeep = 32;  // longer than each name
  std::uint64_t texts = 0;
  std::uint64_t size = 0;
  for_each_entry(file, segments, [&](const ElfW(Dyn) & entry) {
    if (entry.d_tag == DT_STRTAB) texts = segments.offset_of(entry.d_un.d_ptr);
    if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val < kMostBytes ? entry.d_un.d_val : kMostBytes;
  });
  LoaderNames names;
  char part[512 + kKeep];
  std::size_t kept = 0;
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t n = read_at(file, part + kept, size - at < 512 ? size - at : 512, texts + at);
    if (n == 0) break;
    at += n;
    const std::size_t all = kept + n;
    for (std::size_t i = 0; i + kKeep <= all || (at >= size && i < all); ++i) {
      const char* const name = part + i;
      const auto is = [&](const char* wanted, std::size_t bytes) {  // with the zeros around it
        if (i + bytes > all) return false;
        for (std::size_t k = 0; k < bytes; ++k)
          if (name[k] != wanted[k]) return false;
        return true;
      };
      constexpr char kOpens[] = "\0dlopen";
      static_assert(sizeof format::kLeastGlibc <= kKeep);
      names.one_library = names.one_library || is(format::kOneLibrary, sizeof format::kOneLibrary);
      names.least_glibc = names.least_glibc || is(format::kLeastGlibc, sizeof format::kLeastGlibc);
      names.any_glibc = names.any_glibc || is(format::kAnyGlibc, sizeof format::kAnyGlibc);
      names.opens_libraries = names.opens_libraries || is(kOpens, sizeof kOpens);
    }
    kept = all < kKeep ? all : kKeep - 1;
    for (std::size_t k = 0; k < kept; ++k) part[k] = part[all - kept + k];
  }
  return names;
}

/// `is_program`: it was asked for as a program itself, and may be a static one.
Starting how_it_loads(int loader, bool is_program) {
  ElfW(Ehdr) head;
  Segments segments{};
  if (read_at(loader, &head, sizeof head, 0) != sizeof head || !is_elf(head) || !find_segments(loader, head, segments))
    return {};
  if (segments.dynamic.p_type != PT_DYNAMIC) return {};
  const LoaderNames names = names_of_loader(loader, segments);
  if (names.one_library) return {};
  if (names.any_glibc && names.least_glibc) return {StartsHow::kAsUsual, {.old_glibc = true}};
  if (names.any_glibc) return {StartsHow::kOldLoader};
  return {names.opens_libraries || !is_program ? StartsHow::kOtherLoader : StartsHow::kAsUsual};
}

Starting how_its_interpreter_loads(int file, const Segments& segments) {
  char path[1024];
  const std::uint64_t size = segments.interpreter.p_filesz;
  if (size == 0 || size > sizeof path || read_at(file, path, size, segments.interpreter.p_offset) != size ||
      path[size - 1] != '\0')
    return {};
  Identity identity{};
  if (!identify(path, identity)) return {};  // nor will it be started
  if (identity.device == g_loader.device && identity.inode == g_loader.inode) return {};
  const OpenFile loader(path);
  return loader.get() >= 0 ? how_it_loads(loader.get(), false) : Starting();
}

Starting how_elf_starts(int file, const ElfW(Ehdr) & head) {
  if (!is_ours(head)) return {StartsHow::kOtherMachine};
  Segments segments{};
  if (!find_segments(file, head, segments)) return {};
  if (segments.interpreter.p_type != PT_INTERP) return how_it_loads(file, true);
  Starting starting = how_its_interpreter_loads(file, segments);
  starting.needs.libasan = needs_libasan(file, segments);
  return starting;
}

/// The path behind #! in `line`, of which `size` bytes are known, ended by a zero; null: there is none.
const char* path_in_line(char* line, std::size_t size) {
  std::size_t begin = 2;
  while (begin < size && (line[begin] == ' ' || line[begin] == '\t')) ++begin;
  std::size_t end = begin;
  while (end < size && line[end] != ' ' && line[end] != '\t' && line[end] != '\n' && line[end] != '\0') ++end;
  if (end == begin || end == size) return nullptr;
  line[end] = '\0';
  return line + begin;
}

Starting how_file_starts(int file, int scripts) {
  union {
    ElfW(Ehdr) head;
    char line[256];  // as many as the kernel looks at
  } start;
  const std::size_t size = read_at(file, &start, sizeof start, 0);
  if (size >= sizeof start.head && is_elf(start.head)) return how_elf_starts(file, start.head);
  const char* shell = "/bin/sh";  // who execs a text without #!, as execvp does, starts that
  if (size > 2 && start.line[0] == '#' && start.line[1] == '!') shell = path_in_line(start.line, size);
  if (size == 0 || shell == nullptr || scripts == 0) return {};
  const OpenFile next(shell);
  return next.get() >= 0 ? how_file_starts(next.get(), scripts - 1) : Starting();
}

}  // namespace

void note_own_loader() {
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const unsigned long count = getauxval(AT_PHNUM);
  if (segments == nullptr) return;
  // Where the program was loaded, by the address of the segments themselves.
  std::uintptr_t bias = 0;
  for (unsigned long i = 0; i < count; ++i)
    if (segments[i].p_type == PT_PHDR) bias = reinterpret_cast<std::uintptr_t>(segments) - segments[i].p_vaddr;
  for (unsigned long i = 0; i < count; ++i)
    if (segments[i].p_type == PT_INTERP && getauxval(AT_BASE) != 0)
      identify(reinterpret_cast<const char*>(bias + segments[i].p_vaddr), g_loader);
}

Starting how_it_starts(int file, const char* library) {
  constexpr int kMostScripts = 4;  // the kernel's limit
  Starting starting = how_file_starts(file, kMostScripts);
  if (starting.how != StartsHow::kAsUsual || library[0] == '\0') return starting;
  const OpenFile ours(library);
  constexpr int kTooManyOfProcess = -24;  // EMFILE
  constexpr int kTooManyOfSystem = -23;   // ENFILE
  if (ours.get() < 0 && ours.get() != kTooManyOfProcess && ours.get() != kTooManyOfSystem)
    starting.how = StartsHow::kOtherRoot;
  return starting;
}

}  // namespace karst::runtime
