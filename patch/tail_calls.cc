// SPDX-License-Identifier: MIT
#include "patch/tail_calls.h"

#include <elfutils/libdw.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "binary/elf_file.h"
#include "format/tail_calls.h"

namespace karst::patch {
namespace {

// Reading debug information takes some 10 ms for each MiB of it.
constexpr std::size_t kMostDebugInformation = std::size_t{64} << 20;

/// Of libc, libpthread and POSIX: calls that wait, or are made often. None is passed more than six words, and none has
/// a variable number of arguments.
bool takes_registers_alone(std::string_view name) {
  static const std::set<std::string_view> s_names = {"accept",
                                                     "accept4",
                                                     "bind",
                                                     "calloc",
                                                     "clock_gettime",
                                                     "clock_nanosleep",
                                                     "close",
                                                     "closedir",
                                                     "connect",
                                                     "epoll_pwait",
                                                     "epoll_wait",
                                                     "eventfd_read",
                                                     "eventfd_write",
                                                     "exit",
                                                     "fclose",
                                                     "fdatasync",
                                                     "fflush",
                                                     "fgets",
                                                     "flock",
                                                     "fputs",
                                                     "fread",
                                                     "free",
                                                     "fseek",
                                                     "fstat",
                                                     "fsync",
                                                     "ftruncate",
                                                     "fwrite",
                                                     "futimens",
                                                     "getaddrinfo",
                                                     "getrandom",
                                                     "gettimeofday",
                                                     "io_uring_enter",
                                                     "kill",
                                                     "link",
                                                     "listen",
                                                     "lseek",
                                                     "lstat",
                                                     "madvise",
                                                     "malloc",
                                                     "memcmp",
                                                     "memcpy",
                                                     "memmove",
                                                     "memset",
                                                     "mkdir",
                                                     "mmap",
                                                     "mprotect",
                                                     "msync",
                                                     "munmap",
                                                     "nanosleep",
                                                     "pause",
                                                     "poll",
                                                     "posix_memalign",
                                                     "ppoll",
                                                     "pread",
                                                     "pread64",
                                                     "preadv",
                                                     "pselect",
                                                     "pthread_barrier_wait",
                                                     "pthread_cond_broadcast",
                                                     "pthread_cond_clockwait",
                                                     "pthread_cond_signal",
                                                     "pthread_cond_timedwait",
                                                     "pthread_cond_wait",
                                                     "pthread_join",
                                                     "pthread_mutex_clocklock",
                                                     "pthread_mutex_lock",
                                                     "pthread_mutex_timedlock",
                                                     "pthread_mutex_trylock",
                                                     "pthread_mutex_unlock",
                                                     "pthread_rwlock_rdlock",
                                                     "pthread_rwlock_unlock",
                                                     "pthread_rwlock_wrlock",
                                                     "pthread_spin_lock",
                                                     "pthread_yield",
                                                     "puts",
                                                     "pwrite",
                                                     "pwrite64",
                                                     "pwritev",
                                                     "qsort",
                                                     "raise",
                                                     "read",
                                                     "readdir",
                                                     "readv",
                                                     "realloc",
                                                     "recv",
                                                     "recvfrom",
                                                     "recvmmsg",
                                                     "recvmsg",
                                                     "rename",
                                                     "rmdir",
                                                     "sched_yield",
                                                     "select",
                                                     "sem_clockwait",
                                                     "sem_post",
                                                     "sem_timedwait",
                                                     "sem_wait",
                                                     "send",
                                                     "sendfile",
                                                     "sendmmsg",
                                                     "sendmsg",
                                                     "sendto",
                                                     "shutdown",
                                                     "sigsuspend",
                                                     "sigtimedwait",
                                                     "sigwait",
                                                     "sigwaitinfo",
                                                     "sleep",
                                                     "stat",
                                                     "strcmp",
                                                     "strdup",
                                                     "strlen",
                                                     "strncmp",
                                                     "sync",
                                                     "sync_file_range",
                                                     "syncfs",
                                                     "tcdrain",
                                                     "tcsetattr",
                                                     "truncate",
                                                     "unlink",
                                                     "usleep",
                                                     "wait",
                                                     "wait4",
                                                     "waitid",
                                                     "waitpid",
                                                     "write",
                                                     "writev",
                                                     "_ZdaPv",
                                                     "_ZdaPvm",
                                                     "_ZdlPv",
                                                     "_ZdlPvm",
                                                     "_Znam",
                                                     "_Znwm"};
  return s_names.contains(name);
}

struct GiveBack {
  void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};

/// The distance of 4 bytes that ends the instruction, as an address.
std::uint64_t address_in(std::span<const std::byte> instruction, std::uint64_t address) {
  std::int32_t distance = 0;
  std::memcpy(&distance, instruction.data() + instruction.size() - sizeof distance, sizeof distance);
  return address + instruction.size() + static_cast<std::uint64_t>(std::int64_t{distance});
}

/// The jump reads its target beside the stack pointer, which would be another one. (r12 looks the same.)
bool is_by_stack_pointer(std::span<const std::byte> jump) {
  for (std::size_t i = 0; i + 1 < jump.size(); ++i) {
    if (jump[i] != std::byte{0xff}) continue;
    constexpr unsigned kStackPointer = 4;  // in ModRM: a SIB byte follows
    const auto mod_rm = static_cast<unsigned>(jump[i + 1]);
    if (mod_rm >> 6 == 3 || (mod_rm & 7) != kStackPointer) return false;
    return i + 2 >= jump.size() || (static_cast<unsigned>(jump[i + 2]) & 7) == kStackPointer;
  }
  return true;
}

bool is_tail_call(const Stub& stub) {
  return stub.what == Stub::What::kTail || (stub.what == Stub::What::kEntry && stub.leaves && !stub.returns);
}

}  // namespace

Callees::Callees(const ElfImage& image) : image_(image) {
  for (const ElfImage::Import& word : image.imported()) imported_.emplace(word.address, word);
  for (const ElfImage::NamedCode& f : image.functions()) names_.emplace(f.address, f.name);
}

std::string_view Callees::imported_at(std::uint64_t word) const {
  const auto found = imported_.find(word);
  return found != imported_.end() ? found->second.name : std::string_view();
}

bool Callees::is_known_at(std::uint64_t word) const {
  const auto found = imported_.find(word);
  return found != imported_.end() && found->second.is_glibcs && takes_registers_alone(found->second.name);
}

bool Callees::is_known_by(std::uint64_t target) const {
  const auto word = word_of(target);
  return word && is_known_at(*word);
}

std::string_view Callees::name_of(std::uint64_t target) const {
  if (const auto found = names_.find(target); found != names_.end()) return found->second;
  const auto word = word_of(target);
  return word ? imported_at(*word) : std::string_view();
}

std::optional<std::uint64_t> Callees::word_of(std::uint64_t target) const {
  // endbr64, bnd, and a jump by a word.
  constexpr std::byte kEndbr64[] = {std::byte{0xf3}, std::byte{0x0f}, std::byte{0x1e}, std::byte{0xfa}};
  constexpr std::size_t kJumpByWord = 6;
  auto bytes = image_.from(target);
  std::uint64_t at = target;
  const auto skip = [&](std::span<const std::byte> what) {
    if (bytes.size() < what.size() || !std::equal(what.begin(), what.end(), bytes.begin())) return;
    bytes = bytes.subspan(what.size());
    at += what.size();
  };
  skip(kEndbr64);
  const std::byte bnd{0xf2};
  skip({&bnd, 1});
  if (bytes.size() < kJumpByWord || bytes[0] != std::byte{0xff} || bytes[1] != std::byte{0x25}) return std::nullopt;
  return address_in(bytes.first(kJumpByWord), at);
}

bool may_be_in_place(const Callees& callees, StackArguments* arguments, const Instruction& jump,
                     std::span<const std::byte> bytes, bool by_registers) {
  const bool is_anywhere = jump.kind == Kind::kJumpAnywhere;
  if (!is_anywhere && jump.kind != Kind::kJump && jump.kind != Kind::kJumpIf) return false;
  if (is_anywhere && is_by_stack_pointer(bytes)) return false;
  const std::string_view callee = is_anywhere ? callees.imported_at(jump.target) : callees.name_of(jump.target);
  if (format::looks_at_return_address(callee)) return false;
  if (by_registers) return true;
  if (is_anywhere) return callees.is_known_at(jump.target);
  return callees.is_known_by(jump.target) || (arguments != nullptr && arguments->takes_none(jump.target));
}

std::vector<symbols::ParametersOf> parameters_of(const ElfImage& image, const std::vector<std::uint64_t>& functions) {
  std::vector<symbols::ParametersOf> asked;
  asked.reserve(functions.size());
  for (const std::uint64_t address : functions) asked.push_back({address, {}, true, false});
  if (asked.empty()) return asked;
  const auto find = [&](std::uint64_t address) {
    const auto at = std::lower_bound(functions.begin(), functions.end(), address);
    return at != functions.end() && *at == address ? &asked[static_cast<std::size_t>(at - functions.begin())] : nullptr;
  };
  for (const ElfImage::NamedCode& symbol : image.functions())
    if (auto* const f = find(symbol.address))
      // Of several names that of what a compiler has changed counts.
      if (f->link_name.empty() || symbol.name.find('.') != std::string_view::npos) f->link_name = symbol.name;
  for (const std::uint64_t address : image.global_functions())
    if (auto* const f = find(address)) f->is_local = false;
  const auto elf = binary::ElfFile::in_memory(image.whole());
  const bool reads = image.contents(".debug_info").size() <= kMostDebugInformation;
  const std::unique_ptr<Dwarf, GiveBack> dwarf(elf.is_elf() && reads ? dwarf_begin_elf(elf.get(), DWARF_C_READ, nullptr)
                                                                     : nullptr);
  symbols::look_at_parameters(dwarf.get(), 0, asked);
  return asked;
}

void find_calls_in_place(const ElfImage& image, const Frames& frames, std::vector<Function>& functions) {
  std::vector<std::uint64_t> begins;
  for (const Function& f : functions)
    if (f.left_out == LeftOut::kNot && std::any_of(f.stubs.begin(), f.stubs.end(), is_tail_call))
      begins.push_back(f.code.begin);
  const std::vector<symbols::ParametersOf> known = parameters_of(image, begins);
  const Callees callees(image);
  StackArguments arguments(image, frames, callees);
  auto next = known.begin();
  for (Function& f : functions) {
    if (next == known.end() || next->address != f.code.begin) continue;
    for (Stub& stub : f.stubs) {
      if (!is_tail_call(stub)) continue;
      Instruction jump;
      jump.kind = Kind::kJump;
      jump.target = stub.target;
      if (!stub.moved.empty()) jump = stub.moved.back();
      const auto bytes = image.from(stub.from + jump.offset);
      stub.in_place = may_be_in_place(callees, &arguments, jump,
                                      bytes.first(std::min<std::size_t>(bytes.size(), jump.size)), next->in_registers);
    }
    ++next;
  }
}

}  // namespace karst::patch
