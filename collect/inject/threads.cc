// SPDX-License-Identifier: MIT
#include "collect/inject/threads.h"

#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace karst::collect {
namespace {

// What the kernel has in rax while a thread is stopped in a system call that it will begin anew; not in any header.
constexpr std::int64_t kRestartSys = -512;
constexpr std::int64_t kRestartNoIntr = -513;
constexpr std::int64_t kRestartBlock = -516;

constexpr std::uint64_t kMostStack = 64 << 10;  // bytes that are looked through
constexpr std::uint64_t kRoom = 4096;           // below the stack pointer, for the registers and a handler's frame
constexpr std::uint64_t kFunctionSize = 512;    // of libc's entry points, roughly

constexpr std::array<long, 21> kSleeps = {SYS_read,           SYS_poll,        SYS_ppoll,           SYS_select,
                                          SYS_pselect6,       SYS_nanosleep,   SYS_clock_nanosleep, SYS_pause,
                                          SYS_accept,         SYS_accept4,     SYS_recvmsg,         SYS_recvfrom,
                                          SYS_recvmmsg,       SYS_wait4,       SYS_waitid,          SYS_futex,
                                          SYS_epoll_wait,     SYS_epoll_pwait, SYS_rt_sigtimedwait, SYS_rt_sigsuspend,
                                          SYS_restart_syscall /* one of these, once it was interrupted */};

bool is_sleep(long number) { return std::find(kSleeps.begin(), kSleeps.end(), number) != kSleeps.end(); }

/// The instruction before `address` is a call, as far as its bytes tell.
bool follows_call(std::uint64_t address, const ForeignMemory& memory) {
  unsigned char before[7];
  if (!memory.read(address - sizeof before, before, sizeof before)) return false;
  if (before[2] == 0xe8) return true;
  for (const int size : {2, 3, 4, 6, 7})
    if (before[7 - size] == 0xff && (before[8 - size] & 0x38) == 0x10) return true;
  return before[4] == 0x41 && before[5] == 0xff && (before[6] & 0x38) == 0x10;
}

/// What a handler returns to: it calls rt_sigreturn.
bool is_signal_return(std::uint64_t address, const ForeignMemory& memory) {
  constexpr unsigned char kCode[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  unsigned char code[sizeof kCode];
  return memory.read(address, code, sizeof code) && std::memcmp(code, kCode, sizeof code) == 0;
}

}  // namespace

BusyCode::BusyCode(const ForeignMemory& memory, const std::vector<Mapping>& mappings, const OwnAllocator& allocator)
    : only_sleepers_(!allocator.code.empty()) {
  std::uint64_t base = 0;
  std::string path;
  for (const Mapping& m : mappings) {
    if (m.path.empty()) continue;
    if (m.offset == 0 && m.path != path) {
      base = m.begin;
      path = m.path;
    }
    if (!m.is_executable()) continue;
    const std::string name = m.file_name();
    code_.push_back({m.begin, m.end});
    if (name.starts_with("libkarst.so") || name.starts_with("memfd:karst")) own_.push_back({m.begin, m.end});
    if (name.starts_with("ld-linux") || name.starts_with("ld-2.")) ranges_.push_back({m.begin, m.end});
    const auto module = m.path == path ? ForeignModule::of(memory, base) : std::nullopt;
    if (!module) continue;
    const bool is_libc = name.starts_with("libc.so") || name.starts_with("libc-2.");
    if (is_libc) libc_.push_back({m.begin, m.end});
    for (const char* function : {"malloc", "calloc", "realloc", "free", "dl_iterate_phdr", "fork", "_Fork", "vfork"}) {
      const std::uint64_t at = module->find(memory, function);
      if (at == 0) continue;
      // Another allocator may hold its locks anywhere. Karst's library, which stands before it, has none.
      const bool is_allocator = !is_libc && !name.starts_with("libkarst") && function == std::string("malloc");
      if (is_allocator && only_sleepers_ && m.path == allocator.program)
        for (const patch::Range& r : allocator.code)
          ranges_.push_back({module->bias() + r.begin, module->bias() + r.end});
      else if (is_allocator)
        ranges_.push_back({m.begin, m.end});
      else
        ranges_.push_back({at, at + kFunctionSize});
    }
  }
}

bool BusyCode::has(std::uint64_t address) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [address](const Range& r) { return address >= r.begin && address < r.end; });
}

// A signal's frame is the address to return by, and the kernel's ucontext, in whose registers rip is the seventeenth.
bool BusyCode::interrupted_a_call(const StackWords& stack, std::size_t at, const ForeignMemory& memory) const {
  constexpr std::size_t kRip = 22;  // words behind the address: flags, link and stack (5), then registers
  return stack.words.size() - at > kRip && is_behind_call(stack.words[at + kRip], memory);
}

bool BusyCode::is_behind_call(std::uint64_t address, const ForeignMemory& memory) const {
  constexpr std::uint16_t kSystemCall = 0x050f;
  return !has(address) && memory.get<std::uint16_t>(address - kSystemCallSize) == kSystemCall;
}

BusyCode::Verdict BusyCode::judge(const StackWords& stack, const ForeignMemory& memory) const {
  const auto within = [](const std::vector<Range>& ranges, std::uint64_t address) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [address](const Range& r) { return address >= r.begin && address < r.end; });
  };
  const std::uint64_t at = stack.registers.rip;
  if (has(at) || !within(code_, at) || within(own_, at)) return Verdict::kBusy;
  const bool is_asleep = sleeps(stack.registers);
  // A thread that runs in libc may hold any of its locks, those of names that are not exported among them.
  if (!is_asleep && (only_sleepers_ || within(libc_, at))) return Verdict::kBusy;
  const auto is_clear = [&](std::size_t n) {
    const std::uint64_t word = stack.words[n];
    if (!within(code_, word)) return true;
    if (has(word) && follows_call(word, memory)) return false;
    return !is_signal_return(word, memory) || interrupted_a_call(stack, n, memory);
  };
  bool all_clear = true;
  for (std::size_t n = 0; n < stack.words.size() && all_clear; ++n) all_clear = is_clear(n);
  return all_clear ? Verdict::kFree : Verdict::kNotKnown;
}

bool BusyCode::is_free(const std::vector<std::uint64_t>& frames, const ForeignMemory& memory) const {
  for (std::size_t n = 0; n < frames.size(); ++n) {
    if (has(frames[n]) || has(frames[n] - 1)) return false;
    // Behind a signal's frame comes where it interrupted the thread.
    if (is_signal_return(frames[n], memory) && (n + 1 == frames.size() || !is_behind_call(frames[n + 1], memory)))
      return false;
  }
  return true;
}

std::optional<StackWords> stack_of(const user_regs_struct& registers, const ForeignMemory& memory,
                                   const std::vector<Mapping>& mappings) {
  const auto stack = std::find_if(mappings.begin(), mappings.end(),
                                  [&](const Mapping& m) { return registers.rsp >= m.begin && registers.rsp < m.end; });
  if (stack == mappings.end() || (registers.rsp - stack->begin < kRoom && stack->path != "[stack]")) return {};
  StackWords found{registers, {}};
  found.words.resize(std::min<std::uint64_t>(stack->end - registers.rsp, kMostStack) / sizeof(std::uint64_t));
  if (!memory.read(registers.rsp, found.words.data(), found.words.size() * sizeof(std::uint64_t))) return {};
  return found;
}

std::vector<pid_t> threads_to_try(const HeldProcess& process) {
  std::vector<pid_t> asleep;
  std::vector<pid_t> others;
  for (const pid_t thread : process.threads()) {
    if (const char state = process.state(thread); state == 'D' || state == 'Z' || state == 'X') continue;
    std::ifstream file(process.path(thread, "syscall"));
    long number = -1;
    const bool sleeping = static_cast<bool>(file >> number) && is_sleep(number);
    (sleeping ? asleep : others).push_back(thread);
  }
  asleep.insert(asleep.end(), others.begin(), others.end());
  return asleep;
}

std::optional<DeepWait> deep_wait_of(const HeldProcess& process, pid_t thread, const ForeignMemory& memory) {
  if (process.state(thread) != 'D') return std::nullopt;
  std::ifstream file(process.path(thread, "syscall"));  // "NUMBER 0xARG0 ... 0xARG5 0xSP 0xPC", or "running"
  long number = -1;
  std::uint64_t arguments[6];
  DeepWait wait;
  if (!(file >> number >> std::hex)) return std::nullopt;
  for (std::uint64_t& argument : arguments) file >> argument;
  if (!(file >> wait.sp >> wait.ip) || number < 0) return std::nullopt;
  std::uint64_t flags = 0;
  if (number == SYS_clone) flags = arguments[0];
  // What it says of them may have been changed since. But nothing else in this call takes long.
  if (number == SYS_clone3) flags = memory.get<std::uint64_t>(arguments[0]).value_or(0) | CLONE_VFORK;
  wait.is_vfork = number == SYS_vfork || (flags & CLONE_VFORK) != 0;
  wait.is_exec = number == SYS_execve || number == SYS_execveat;
  return wait;
}

bool sleeps(const user_regs_struct& registers) {
  return static_cast<std::int64_t>(registers.orig_rax) >= 0 && is_sleep(static_cast<long>(registers.orig_rax));
}

Resumption resumption_of(const user_regs_struct& registers) {
  const std::uint64_t again = registers.rip - kSystemCallSize;
  const auto interrupted = static_cast<std::uint64_t>(-std::int64_t{EINTR});
  const auto number = static_cast<std::int64_t>(registers.orig_rax);
  const auto result = static_cast<std::int64_t>(registers.rax);
  if (number >= 0) {
    if (result == kRestartNoIntr) return {again, registers.orig_rax, again, registers.orig_rax};
    if (result == kRestartSys) return {again, registers.orig_rax, registers.rip, interrupted, true};
    if (result == kRestartNoHand) return {again, registers.orig_rax, registers.rip, interrupted};
    if (result == kRestartBlock) return {again, SYS_restart_syscall, registers.rip, interrupted};
  }
  return {registers.rip, registers.rax, registers.rip, registers.rax};
}

}  // namespace karst::collect
