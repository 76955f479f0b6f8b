// SPDX-License-Identifier: MIT
#include "collect/inject/load.h"

#include <elf.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "arch/remote_call.h"
#include "base/process_status.h"
#include "collect/inject/allocator.h"
#include "collect/inject/doubtful_stacks.h"
#include "collect/inject/memory.h"
#include "collect/inject/threads.h"
#include "collect/inject/tracee.h"

namespace karst::collect {
namespace {

constexpr std::uint64_t kStackSize = 1 << 20;       // touched as far as it is used
constexpr std::chrono::seconds kLookFor{5};         // a thread that is free
constexpr std::chrono::seconds kReturnsWithin{20};  // what is called
constexpr int kStopsWithinMs = 100;                 // a thread that runs, on a busy machine
constexpr int kLooksEveryMs = 1000;                 // for the end of the thread
constexpr useconds_t kRoundMicroseconds = 5000;     // between two looks at all threads
constexpr char kRuntime[] = "libkarst.so";
constexpr std::uint64_t kUsualVectorControl = 0x1f80;  // mxcsr at a program's start

/// A mask, as of signals or capabilities; 0 where the process has ended.
std::uint64_t mask_of(const ProcessStatus& status, std::string_view field) {
  return status.number(field, 16).value_or(0);
}

/// The real, effective, saved and file system's user are all us.
bool is_all_ours(const ProcessStatus& status) {
  const auto users = status.numbers("Uid");
  return std::all_of(users.begin(), users.end(), [](std::uint64_t user) { return user == geteuid(); });
}

std::string why_not_traced(const HeldProcess& process, int error) {
  if (error == ESRCH || !process.is_there()) return "it has ended";
  if (error != EPERM && error != EACCES) return std::strerror(error);
  if (geteuid() == 0)
    return "the system does not let karst trace it, though it is root's (a container without CAP_SYS_PTRACE, or a "
           "security module)";
  const auto status = ProcessStatus::read(process.path("status"));
  if (!is_all_ours(status))
    return "it runs with the rights of another user (setuid, or it has changed its user); only root may attach to it";
  if (mask_of(status, "CapPrm") != 0)
    return "it has capabilities that this user has not (of its file, for example); only root may attach to it";
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope != 0)
    return "kernel.yama.ptrace_scope is " + std::to_string(scope) +
           ": only root may attach. 'sudo karst attach', or 'sudo sysctl kernel.yama.ptrace_scope=0'";
  return "it does not let its own user look into it (PR_SET_DUMPABLE, a file that this user cannot read, or it changed "
         "its user); root may";
}

/// Its program has more rights than who started it, as the dynamic linker is told.
bool is_secure(const HeldProcess& process) {
  std::ifstream auxv(process.path("auxv"), std::ios::binary);
  for (Elf64_auxv_t entry; auxv.read(reinterpret_cast<char*>(&entry), sizeof entry);)
    if (entry.a_type == AT_SECURE) return entry.a_un.a_val != 0;
  return false;
}

/// Whether a thread of it may be made to call something at all.
Status check(const HeldProcess& process) {
  const auto status = ProcessStatus::read(process.path("status"));
  if (const auto tracer = status.number("TracerPid").value_or(0); tracer != 0)
    return Error{"process " + std::to_string(tracer) + " (a debugger, or strace) traces it already, and only one can"};
  if (status.number("Seccomp").value_or(0) != 0)
    return Error{"it runs under a seccomp filter, which may end a process that loads a library"};
  if (is_secure(process))
    return Error{
        "its program has more rights than who started it (setuid, or capabilities of its file); libkarst does "
        "nothing in such a process"};
  const auto parent = static_cast<pid_t>(status.number("PPid").value_or(0));
  if (parent != 0 && syscall(SYS_kcmp, process.number(), parent, KCMP_VM, 0, 0) == 0)
    return Error{"it shares its parent's memory until it starts a program (vfork)"};
  return Unit{};
}

Status check_file(const HeldProcess& process, const std::string& path) {
  struct stat ours {};
  struct stat theirs {};
  if (stat(path.c_str(), &ours) != 0) return Error{path + ": " + std::strerror(errno)};
  if (stat(process.path("root" + path).c_str(), &theirs) != 0 && errno != ENOENT && errno != ENOTDIR)
    return Error{why_not_traced(process, errno)};
  if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
    return Error{"it does not see " + path + ": it has other file systems mounted (a container). Install Karst there"};
  return Unit{};
}

/// What a thread shall call: a function like dlopen, and one like dlerror.
struct Call {
  std::string function;
  std::string problem;  ///< the function that says why it failed
  std::string argument;
  std::string library;  ///< the file whose they are, without its version; empty: libc
  std::string refusal;  ///< how an error that it gives begins
};

/// What of the process the code needs.
struct Target {
  std::vector<Mapping> mappings;
  std::uint64_t function = 0;
  std::uint64_t problem = 0;
  std::uint64_t error_number = 0;
  std::uint64_t place = 0;  ///< for the code
  std::uint64_t stack = 0;
  std::uint64_t caught = 0;  ///< signals that have handlers
};

/// Where `size` bytes of the room are unused; 0: nowhere.
std::uint64_t room_in(const ForeignMemory& memory, std::uint64_t room, std::size_t size) {
  constexpr std::size_t kAlignment = 16;
  std::vector<char> bytes(arch::kRemoteRoom);
  if (!memory.read(room, bytes.data(), bytes.size())) return 0;
  std::size_t used = bytes.size();
  while (used != 0 && bytes[used - 1] == 0) --used;
  const std::size_t at = (used + kAlignment) / kAlignment * kAlignment;  // a zero ends what was used
  return at + size <= bytes.size() ? room + at : 0;
}

Result<Target> look(const HeldProcess& process, const ForeignMemory& memory, const Call& call, std::size_t size) {
  Target target;
  memory.begin_look();
  target.mappings = mappings_of(process);
  target.caught = mask_of(ProcessStatus::read(process.path("status")), "SigCgt");
  bool has_linker = false;
  // dlopen() loads into the namespace of who calls it, so the code must lie in the program's own, too.
  const auto own = own_modules(memory, target.mappings);
  for (const Mapping& m : target.mappings) {
    const std::string name = m.file_name();
    if (m.offset != 0 || m.path.empty() || m.path[0] != '/') continue;
    if (name.starts_with("ld-musl")) return Error{"it runs with musl's libc; libkarst.so needs glibc"};
    has_linker = has_linker || name.starts_with("ld-linux") || name.starts_with("ld-2.");
    const auto module = ForeignModule::of(memory, m.begin);
    if (!module) {
      const auto head = memory.get<std::uint64_t>(m.begin);
      if (head && (*head & 0xffffffffffU) == 0x01464c457fU)
        return Error{"it is a 32-bit program; libkarst.so is for x86-64"};
      continue;
    }
    if (own && !own->empty() && std::find(own->begin(), own->end(), module->dynamic()) == own->end()) continue;
    const bool is_libc = name.starts_with("libc.so") || name.starts_with("libc-2.");
    if (is_libc) target.error_number = module->find(memory, "__errno_location");
    const bool is_runtime = name.starts_with(kRuntime);
    // Room for such code is libkarst's alone. The first call, which brings it, needs other.
    if (!call.library.empty() && is_runtime)
      if (const std::uint64_t room = module->find(memory, "karst_attach_room"); room != 0)
        if (const std::uint64_t place = room_in(memory, room, size); place != 0) target.place = place;
    if (call.library.empty() ? is_libc : name.starts_with(call.library)) {
      target.function = module->find(memory, call.function);
      target.problem = module->find(memory, call.problem);
      if (target.function == 0 || target.problem == 0)
        return Error{call.library.empty() ? "its libc has no dlopen; glibc 2.34 or newer is needed"
                                          : "the " + call.library + " in it is of another version"};
    }
    std::vector<char> bytes(size);
    const bool is_code = std::any_of(target.mappings.begin(), target.mappings.end(), [&](const Mapping& code) {
      return code.is_code() && code.path == m.path && module->slack() >= code.begin &&
             module->slack() + size <= code.end;
    });
    if (target.place == 0 && is_code && module->slack_size() >= size &&
        memory.read(module->slack(), bytes.data(), size) &&
        std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; }))
      target.place = module->slack();
  }
  if (target.mappings.empty()) return Error{"it has ended"};
  if (target.error_number == 0)
    return Error{has_linker ? "no libc of glibc's is in it" : "it is a static program; nothing can be loaded into it"};
  if (target.function == 0) return Error{call.library + " is not in it any more"};
  if (target.place == 0)
    return Error{"no library of it has " + std::to_string(size) + " unused bytes behind its code for Karst's call"};
  const auto stack = free_place(target.mappings, kStackSize);
  if (!stack) return Error{"its address space is full"};
  target.stack = *stack;
  return target;
}

/// The code, and what it reads.
std::vector<char> code_for(const Target& target, const Resumption& resumption, std::uint64_t mask,
                           const std::string& argument) {
  arch::RemoteCall call{};
  call.resume_ip = resumption.ip;
  call.resume_ax = resumption.ax;
  call.interrupted_ip = resumption.interrupted_ip;
  call.interrupted_ax = resumption.interrupted_ax;
  call.stack = target.stack;
  call.stack_size = kStackSize;
  call.function = target.function;
  call.problem = target.problem;
  call.error_number = target.error_number;
  call.vectors_size = arch::vectors_size();
  call.all_signals = ~std::uint64_t{0};
  call.control = kUsualVectorControl;
  call.mask = mask;
  call.caught = target.caught;
  call.may_restart = resumption.may_restart ? 1 : 0;
  std::vector<char> code(karst_remote_call, karst_remote_call_end);
  const char* bytes = reinterpret_cast<const char*>(&call);
  code.insert(code.end(), bytes, bytes + sizeof call);
  code.insert(code.end(), argument.begin(), argument.end());
  code.push_back('\0');
  return code;
}

/// From where the thread is sent to the code, until the function has returned. The thread then goes on alone. The code
/// stays where it is: a signal's handler may yet return into it, on whatever stack.
Status follow(Tracee& tracee, const ForeignMemory& memory, const Target& target, const Call& call) {
  const auto until = SteadyClock::now() + kReturnsWithin;
  while (SteadyClock::now() < until) {
    const auto at = tracee.to_system_call(kLooksEveryMs);
    if (!tracee.attached()) return Error{"it ended meanwhile"};
    if (!at || !at->begins || at->number != SYS_munmap || at->arguments[0] != target.stack) continue;
    if (at->arguments[1] == 0) return Error{"it got no memory for the call (a limit on its address space?)"};
    const auto said = memory.get<arch::RemoteResult>(target.stack + kStackSize - arch::kRemoteResultSize);
    if (said && said->handle != 0) return Unit{};
    return Error{call.refusal + (said ? std::string(said->message, strnlen(said->message, sizeof said->message))
                                      : "the reason could not be read")};
  }
  return Error{"the call of " + call.function +
               " in it has not returned for 20 s; the thread goes on with what it did when it does"};
}

/// None: this thread is not where that may be done now.
std::optional<Status> call_in(const HeldProcess& process, pid_t thread, const ForeignMemory& memory,
                              const Target& target, const Call& call, const OwnAllocator& allocator,
                              DoubtfulStacks& doubtful) {
  Tracee tracee(process, thread);
  if (!tracee.attached()) {
    if (errno == ESRCH) return std::nullopt;
    if (const char state = process.state(thread); state == 'Z' || state == 'X') return std::nullopt;
    return Status(Error{why_not_traced(process, errno)});
  }
  if (!tracee.stop(kStopsWithinMs)) return std::nullopt;
  if (!memory.is_of(process, thread)) return Status(Error{"it has become another program meanwhile; try again"});
  const auto registers = tracee.registers();
  const auto mask = tracee.signal_mask();
  if (!registers || !mask || tracee.in_restartable_sequence(registers->rip, memory)) return std::nullopt;
  const auto stack = stack_of(*registers, memory, target.mappings);
  if (!stack) return std::nullopt;
  memory.begin_look();
  const BusyCode busy(memory, target.mappings, allocator);
  const auto verdict = busy.judge(*stack, memory);
  if (verdict == BusyCode::Verdict::kBusy) return std::nullopt;
  if (verdict == BusyCode::Verdict::kNotKnown && !doubtful.is_free(*stack, busy, memory)) return std::nullopt;
  const std::vector<char> code = code_for(target, resumption_of(*registers), *mask, call.argument);
  if (!memory.write(target.place, code.data(), code.size()))
    return Status(Error{"its code cannot be written to (SELinux, AppArmor or lockdown?)"});
  user_regs_struct there = *registers;
  there.rip = target.place;
  there.orig_rax = ~std::uint64_t{0};  // the kernel must not begin the system call anew at the code's place
  if (!tracee.set_registers(there)) return Status(Error{why_not_traced(process, errno)});
  // Where the thread waits with another mask, as in sigsuspend(), a handler would run before the code does, and the
  // wait would begin again: what it waits for has been. In this order, so that the mask is set back if karst dies.
  if (!tracee.block_signals()) {
    const int why = errno;
    tracee.set_registers(*registers);
    return Status(Error{why_not_traced(process, why)});
  }
  return follow(tracee, memory, target, call);
}

Status call_in_process(const HeldProcess& process, const Call& call) {
  if (Status checked = check(process); !checked) return checked;
  auto memory = ForeignMemory::open(process);
  if (!memory) return Error{why_not_traced(process, EPERM)};
  if (Status seen = call.library.empty() ? check_file(process, call.argument) : Unit{}; !seen) return seen;
  const std::size_t size = static_cast<std::size_t>(karst_remote_call_end - karst_remote_call) +
                           sizeof(arch::RemoteCall) + call.argument.size() + 1;
  const OwnAllocator allocator = own_allocator(process, *memory, mappings_of(process));
  DoubtfulStacks doubtful(process);
  const auto until = SteadyClock::now() + kLookFor;
  do {
    auto target = look(process, *memory, call, size);
    if (!target) return target.error();
    for (const pid_t thread : threads_to_try(process)) {
      if (SteadyClock::now() >= until) break;
      auto called = as_tracer([&] { return call_in(process, thread, *memory, *target, call, allocator, doubtful); });
      if (called) return *called;
    }
    doubtful.prepare();
    usleep(kRoundMicroseconds);
  } while (SteadyClock::now() < until);
  if (!allocator.program.empty() && allocator.code.empty())
    return Error{"its program has an allocator in itself, which cannot be told from the program's other code"};
  return Error{
      "for 5 s each of its threads was in the dynamic linker, the allocator or a signal handler, or did not stop; try "
      "again"};
}

}  // namespace

Status load_library(const HeldProcess& process, const std::string& path) {
  return call_in_process(process, {.function = "dlopen",
                                   .problem = "dlerror",
                                   .argument = path,
                                   .library = "",
                                   .refusal = "its dynamic linker refuses the library: "});
}

Status call_runtime(const HeldProcess& process, const std::string& function, const std::string& argument) {
  return call_in_process(process, {.function = function,
                                   .problem = "karst_attach_problem",
                                   .argument = argument,
                                   .library = kRuntime,
                                   .refusal = ""});
}

Status call_library(const HeldProcess& process, const std::string& library, const std::string& function,
                    const std::string& problem) {
  return call_in_process(process,
                         {.function = function, .problem = problem, .argument = "", .library = library, .refusal = ""});
}

}  // namespace karst::collect
