// What the libraries of interpose/ that stand before files and sockets ask of libkarst: what lies in memory that may
// not be there, and what was open as the process began.
#include <linux/fcntl.h>
#include <sys/prctl.h>

#include "format/file.h"
#include "runtime/hooks/detours.h"
#include "runtime/hooks/note_names.h"
#include "runtime/hooks/values.h"
#include "runtime/hooks/ways_out.h"
#include "runtime/maintenance/switches.h"
#include "runtime/process/fork.h"
#include "runtime/recording/arena.h"
#include "runtime/system/memory.h"
#include "runtime/system/own_program.h"
#include "runtime/system/syscalls.h"

extern "C" void karst_api_log(karst::runtime::NoteFormat*, const char*, std::uint32_t, const std::uint64_t*);

namespace karst::runtime {
namespace {

constexpr std::uint32_t kInfo = 2;
constexpr int kMostDescriptors = 256;
constexpr char kOurMemory[] = "/memfd:karst";  // arenas (recording/arena_memory.cc)

/// In a child by vfork: it has its parent's memory, and a number of its own.
bool in_vfork() {
  if (load(g_vforks) == 0) return false;
  return g_arena.exists() && !in_forked_child() && g_arena.header().pid != static_cast<std::uint32_t>(sys::getpid());
}

struct DirectoryEntry {  // linux_dirent64
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t size;
  unsigned char type;
  char name[];
};

/// Where the link leads. False: it cannot be told.
bool read_link(const char* path, char* to, std::size_t size) {
  const long got = sys::call(SYS_readlinkat, AT_FDCWD, sys::word(path), sys::word(to), static_cast<long>(size - 1));
  if (got <= 0) return false;
  to[got] = '\0';
  return true;
}

void say_directory() {
  static NoteFormat format{{format::kDirectoryIs, nullptr, 0, 0}, 0};
  char path[1024];
  if (!read_link("/proc/thread-self/cwd", path, sizeof path)) return;
  const std::uint64_t words[] = {reinterpret_cast<std::uintptr_t>(path)};
  karst_api_log(&format, "%s", kInfo, words);
}

void say_descriptor(const char* name) {
  static NoteFormat format{{format::kDescriptorIs, nullptr, 0, 0}, 0};
  constexpr char kLinks[] = "/proc/thread-self/fd/";
  constexpr std::size_t kMostDigits = 10;
  const std::size_t digits = length(name);
  char link[sizeof kLinks + kMostDigits], path[1024];
  if (digits > kMostDigits) return;
  copy(link, kLinks, sizeof kLinks - 1);
  copy(link + sizeof kLinks - 1, name, digits + 1);
  if (!read_link(link, path, sizeof path) || starts_with(path, kOurMemory)) return;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < digits; ++i) number = 10 * number + static_cast<std::uint64_t>(name[i] - '0');
  const std::uint64_t words[] = {number, reinterpret_cast<std::uintptr_t>(path)};
  karst_api_log(&format, "%is", kInfo, words);
}

void say_descriptors() {
  const long directory = sys::open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) {  // none is left, perhaps
    for (char name[] = "0"; name[0] <= '9'; ++name[0]) say_descriptor(name);
    return;
  }
  alignas(8) char entries[2048];
  int said = 0;
  for (long size = 1; size > 0 && said < kMostDescriptors;) {
    size = sys::call(SYS_getdents64, directory, sys::word(entries), sizeof entries);
    for (long at = 0; at < size && said < kMostDescriptors; ++said) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->size;
      std::uint64_t number = 0;
      bool is_number = true;
      for (const char* c = entry->name; *c != '\0'; ++c) {
        is_number = is_number && *c >= '0' && *c <= '9';
        number = 10 * number + static_cast<std::uint64_t>(*c - '0');
      }
      if (is_number && number != static_cast<std::uint64_t>(directory)) say_descriptor(entry->name);
    }
  }
  sys::close(static_cast<int>(directory));
}

}  // namespace
}  // namespace karst::runtime

using namespace karst::runtime;

#define KARST_API(type, name) extern "C" __attribute__((visibility("default"))) type karst_api_##name

/// As own_program() has it.
KARST_API(std::uint64_t, program)(char* to, std::uint64_t size) { return karst::runtime::own_program(to, size); }

/// Whether the calling thread's calls are to be told. Those of a child by vfork are not its parent's, whose memory it
/// has.
KARST_API(bool, tells)() { return is_switched_on() && !in_vfork(); }

/// Copies from memory that may not be there: up to `size` bytes, of a text up to its NUL. Says how many could be read.
/// Any context; keeps errno.
KARST_API(std::uint32_t, read)(const void* from, unsigned char* to, std::uint32_t size, bool is_text) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return is_text ? read_text(address, to, size, stack) : read_memory(address, to, size, stack);
}

/// Functions that the program has in itself (runtime/hooks/detours.h).
KARST_API(const void*, find_detour)(const char* name) { return find_detour(name); }
KARST_API(bool, open_detour)(const char* name, const void* to) { return open_detour(name, to); }

/// Says what is open now, once if not asked for again. A filter that the process began under is not known to us, and
/// might end it for such a call.
KARST_API(void, say_descriptors)(bool again) {
  static bool s_said;
  if ((s_said && !again) || !is_switched_on() || sys::call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != 0) return;
  s_said = true;
  say_directory();
  say_descriptors();
}
