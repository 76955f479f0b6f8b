// SPDX-License-Identifier: MIT
// What the libraries of interpose/ that stand before files and sockets ask of libkarst: what lies in memory that may
// not be there, and what was open as the process began.
#include <fcntl.h>
#include <sys/prctl.h>

#include "format/file.h"
#include "format/socket_address.h"
#include "runtime/modules/note_names.h"
#include "runtime/process/read_memory.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/mode.h"
#include "runtime/system/forked.h"
#include "runtime/system/memory.h"
#include "runtime/system/own_program.h"
#include "runtime/system/syscalls.h"
#include "runtime/unbuilt/detours.h"
#include "runtime/ways_out/ways_out.h"

extern "C" void karst_api_log(karst::runtime::NoteFormat*, const char*, std::uint32_t, const std::uint64_t*);

namespace karst::runtime {
namespace {

constexpr std::uint32_t kInfo = 2;
constexpr std::uint32_t kMostDescriptors = 256;
constexpr char kOurMemory[] = "/memfd:karst";  // arenas (recording/arena_memory.cc)

/// In a child by vfork: it has its parent's memory, and a number of its own.
bool in_vfork() {
  if (load(g_vforks) == 0) return false;
  return g_arena.exists() && !in_forked_child() && g_arena.header().pid != static_cast<std::uint32_t>(sys::getpid());
}

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

void say(int number, const char* name) {
  static NoteFormat format{{format::kDescriptorIs, nullptr, 0, 0}, 0};
  const std::uint64_t words[] = {static_cast<std::uint32_t>(number), reinterpret_cast<std::uintptr_t>(name)};
  karst_api_log(&format, "%is", kInfo, words);
}

/// Who is at the other end, or where the socket is. False: nobody, and nowhere.
bool name_socket(int number, char* to, std::size_t size) {
  sockaddr_storage address;
  int length = sizeof address;
  format::SocketAddressText text;
  if (sys::call(SYS_getpeername, number, sys::word(&address), sys::word(&length)) == 0) {
    text.write(address, static_cast<std::uint32_t>(length));
  } else {
    length = sizeof address;
    if (sys::call(SYS_getsockname, number, sys::word(&address), sys::word(&length)) != 0) return false;
    const bool is_ip = address.ss_family == AF_INET || address.ss_family == AF_INET6;
    if (is_ip && reinterpret_cast<const sockaddr_in&>(address).sin_port == 0) return false;
    text.add(format::kSocketAt);
    text.write(address, static_cast<std::uint32_t>(length));
  }
  if (text.size() >= size) return false;
  copy(to, text.text(), text.size());
  to[text.size()] = '\0';
  return true;
}

/// False: nothing is open under this number. By its number alone: to list what is open takes a descriptor, which
/// another thread may be about to get, or the last one there is.
bool say_descriptor(int number) {
  constexpr char kLinks[] = "/proc/thread-self/fd/";
  constexpr std::size_t kMostDigits = 10;
  char link[sizeof kLinks + kMostDigits], path[1024];
  copy(link, kLinks, sizeof kLinks - 1);
  char digits[kMostDigits];
  std::size_t count = 0;
  for (auto rest = static_cast<unsigned>(number); count == 0 || rest != 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  for (std::size_t i = 0; i < count; ++i) link[sizeof kLinks - 1 + i] = digits[count - 1 - i];
  link[sizeof kLinks - 1 + count] = '\0';
  if (!read_link(link, path, sizeof path)) return false;
  if (starts_with(path, kOurMemory)) return true;
  if (starts_with(path, "socket:")) name_socket(number, path, sizeof path);
  say(number, path);
  return true;
}

/// The lowest numbers, as the kernel gives them out.
void say_descriptors(std::uint32_t most) {
  constexpr int kLongestGap = 64;
  int gap = 0;
  for (int number = 0; most != 0 && gap < kLongestGap; ++number) {
    if (say_descriptor(number))
      --most, gap = 0;
    else
      ++gap;
  }
}

std::uint64_t g_said_at;  // the hand of the arena
std::uint32_t g_saying;   // the process of which a thread is about it

/// No filter of the program's: one that it began under is not known to us, and might end it for such a call.
bool may_ask() { return sys::call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == 0; }

/// What was said is overwritten in time; then nobody would know what the numbers of calls mean. Thus it is said again
/// in each quarter of what is kept, by a thread that is about to call, and takes a small part of that.
__attribute__((noinline)) void say_again(std::uint64_t hand, std::uint32_t capacity) {
  const auto own = static_cast<std::uint32_t>(sys::getpid());
  const std::uint32_t before = load(g_saying);
  if (before == own || !exchange_if(g_saying, before, own)) return;
  store(g_said_at, hand);
  if (may_ask()) {
    constexpr std::uint32_t kEventsOfOne = 64;
    const std::uint32_t room = capacity / 4 * format::kEventsPerBlock / kEventsOfOne;
    char path[1024];
    if (read_link("/proc/thread-self/cwd", path, sizeof path)) say(format::kDirectoryDescriptor, path);
    say_descriptors(room < kMostDescriptors ? room : kMostDescriptors);
  }
  store(g_saying, 0U);
}

void say_again_in_time() {
  const std::uint64_t hand = load(g_arena.header().hand);
  const std::uint32_t capacity = g_arena.block_capacity();
  const std::uint64_t said_at = load(g_said_at);
  // A child by fork begins with an arena of its own.
  constexpr std::uint32_t kLeast = 16;
  if (capacity >= kLeast && hand >= capacity - capacity / 4 && (hand < said_at || hand - said_at >= capacity / 4))
      [[unlikely]]
    say_again(hand, capacity);
}

}  // namespace
}  // namespace karst::runtime

using namespace karst::runtime;

#define KARST_API(type, name) extern "C" __attribute__((visibility("default"))) type karst_api_##name

/// As own_program() has it.
KARST_API(std::uint64_t, program)(char* to, std::uint64_t size) { return karst::runtime::own_program(to, size); }

/// Whether the calling thread's calls are to be told. Those of a child by vfork are not its parent's, whose memory it
/// has.
KARST_API(bool, tells)() {
  if (!is_switched_on() || in_vfork() || !g_arena.exists()) return false;
  say_again_in_time();
  return true;
}

/// Copies from memory that may not be there: up to `size` bytes, of a text up to its NUL. Says how many could be read.
/// Any context; keeps errno.
KARST_API(std::uint32_t, read)(const void* from, unsigned char* to, std::uint32_t size, bool is_text) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return is_text ? read_text(address, to, size, stack) : read_memory(address, to, size, stack);
}

/// Functions that the program has in itself (runtime/unbuilt/detours.h).
KARST_API(const void*, find_detour)(const char* name) { return find_detour(name); }
KARST_API(bool, open_detour)(const char* name, const void* to) { return open_detour(name, to); }

/// Says what is open now, once if not asked for again.
KARST_API(void, say_descriptors)(bool again) {
  static bool s_said;
  if ((s_said && !again) || !is_switched_on() || !may_ask()) return;
  s_said = true;
  say_directory();
  say_descriptors(kMostDescriptors);
}
