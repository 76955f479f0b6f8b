// SPDX-License-Identifier: MIT
// It is made by a bare clone() that shares the memory alone. Signals are blocked while that goes on, so none of the
// program's handlers runs in it; then it has a table of its own with one handler, for the program's end.
#include "runtime/system/own_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "arch/arch.h"
#include "arch/cpu.h"
#include "runtime/system/memory.h"
#include "runtime/system/own_descriptor.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

constexpr int kParentDied = 64;  // the last one: nobody's default
constexpr std::uint64_t kParentDiedBit = std::uint64_t{1} << (kParentDied - 1);

OwnProcess* g_first;
std::uint32_t g_program;  // whose memory this is

/// Its creator's thread, or all of the program, has ended. Between two threads of the program nothing changes: the
/// kernel makes it another one's child.
void creator_ended(int) {
  if (static_cast<std::uint32_t>(sys::getppid()) != load(g_program)) sys::call(SYS_exit_group, 0);
}

/// As the kernel has it.
struct Action {
  void (*handler)(int);
  std::uint64_t flags;
  void (*restorer)();
  std::uint64_t mask;
};

void follow_parent() {
  constexpr std::uint64_t kHasRestorer = 0x04000000;
  const Action action{creator_ended, kHasRestorer, arch::karst_return_from_signal, ~std::uint64_t{0}};
  sys::call(SYS_rt_sigaction, kParentDied, sys::word(&action), 0, sizeof action.mask);
  sys::call(SYS_prctl, PR_SET_PDEATHSIG, kParentDied, 0, 0, 0);
  sys::call(SYS_rt_sigprocmask, SIG_UNBLOCK, sys::word(&kParentDiedBit), 0, sizeof kParentDiedBit);
  creator_ended(kParentDied);  // before it could be told
}

/// What the program forks now is of its own namespace of process numbers. In another one ours would be the first, and
/// take all others of it along when it ends.
bool children_are_beside_us() {
  char own[40];
  char children[40];
  const long own_size =
      sys::call(SYS_readlinkat, -100, sys::word("/proc/thread-self/ns/pid"), sys::word(own), sizeof own);
  const long size = sys::call(SYS_readlinkat, -100, sys::word("/proc/thread-self/ns/pid_for_children"),
                              sys::word(children), sizeof children);
  if (own_size <= 0 || own_size != size) return false;
  for (long i = 0; i < size; ++i)
    if (own[i] != children[i]) return false;
  return true;
}

std::uint32_t put_number(std::uint64_t n, char* to) {
  char digits[20];
  std::uint32_t count = 0;
  do digits[count++] = static_cast<char>('0' + n % 10);
  while ((n /= 10) != 0);
  for (std::uint32_t i = 0; i < count; ++i) to[i] = digits[count - 1 - i];
  return count;
}

}  // namespace

OwnProcess* OwnProcess::at(std::uintptr_t stack) {
  OwnProcess* p = load(g_first);
  while (p != nullptr && !p->memory_.has(stack)) p = p->next_;
  return p;
}

void OwnProcess::begin() {
  OwnProcess* const self = at(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  sys::call(SYS_prctl, PR_SET_NAME, sys::word(self->name_));
  follow_parent();
  sys::call(SYS_chdir, sys::word("/"));
  OwnDescriptor::close_all_others();
  self->body_();
}

bool OwnProcess::start(Body body, const char* name) {
  // Valgrind knows no process that shares memory, and gives up.
  if (arch::runs_on_valgrind() || !memory_.make() || !children_are_beside_us()) return false;
  reap(WNOHANG);  // somebody has killed it
  if (!listed_) {
    next_ = g_first;
    store(g_first, this);
    listed_ = true;
  }
  body_ = body;
  name_ = name;
  store(g_program, static_cast<std::uint32_t>(sys::getpid()));
  // No signal at its end, so that wait() knows nothing of it, and no tracer of the program's gets it.
  constexpr std::uint64_t kFlags =
      CLONE_VM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_UNTRACED;
  const sys::SignalsBlocked inherited;
  const long pid = arch::karst_make_thread(kFlags, memory_.stack_top(), &pid_, memory_.thread_pointer(), begin);
  if (pid < 0) return false;
  store(last_pid_, static_cast<std::uint32_t>(pid));
  return true;
}

void OwnProcess::reap(int options) {
  const std::uint32_t last = load(last_pid_);
  if (last == 0) return;
  constexpr long kInterrupted = -4;
  while (sys::call(SYS_wait4, last, 0, __WALL | options, 0) == kInterrupted) {
  }
  store(last_pid_, 0U);
}

void OwnProcess::wait_until_gone() {
  for (std::uint32_t pid = load(pid_); pid != 0; pid = load(pid_))
    sys::call(SYS_futex, sys::word(&pid_), FUTEX_WAIT, pid, 0);
  reap(0);
}

void OwnProcess::forget() {
  pid_ = 0;
  last_pid_ = 0;
}

bool is_own_process() {
  return OwnProcess::at(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))) != nullptr;
}

bool was_own_process(std::uint32_t pid) {
  for (const OwnProcess* p = load(g_first); p != nullptr; p = p->next_)
    if (load(p->last_pid_) == pid && !p->running()) return true;
  return false;
}

std::uint32_t programs_pid() { return is_own_process() ? load(g_program) : static_cast<std::uint32_t>(sys::getpid()); }

namespace {

/// The program's first thread has ended and others have not: the kernel keeps it, without memory. Its state and the
/// number of threads are fields 3 and 20 of /proc/PID/stat; a name before them may have anything in it.
bool goes_on_without_first_thread() {
  char path[48];
  char text[1024];
  if (!programs_proc("stat", path, sizeof path)) return false;
  const long fd = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (sys::failed(fd)) return false;
  const long size = sys::read(static_cast<int>(fd), text, sizeof text);
  sys::close(static_cast<int>(fd));
  long at = size - 1;
  while (at > 0 && text[at] != ')') --at;
  if (at <= 0 || at + 2 >= size || text[at + 2] != 'Z') return false;
  constexpr int kBlanksBefore = 18;  // from the name's end to the number of threads
  for (int blanks = 0; at < size && blanks < kBlanksBefore; ++at) blanks += text[at] == ' ' ? 1 : 0;
  std::uint32_t threads = 0;
  for (; at < size && text[at] >= '0' && text[at] <= '9' && threads < 1000; ++at)
    threads = threads * 10 + static_cast<std::uint32_t>(text[at] - '0');
  return threads > 1;
}

}  // namespace

bool program_is_there() {
  constexpr long kSameMemory = 1;  // KCMP_VM
  const long order = sys::call(SYS_kcmp, sys::getpid(), load(g_program), kSameMemory, 0, 0);
  return order <= 0 || goes_on_without_first_thread();  // negative: not known
}

bool programs_proc(const char* rest, char* path, std::uint32_t room) {
  // The number is that of our own namespace; /proc may be another's.
  char seen[24];
  char own[24];
  const long size = sys::call(SYS_readlinkat, -100, sys::word("/proc/self"), sys::word(seen), sizeof seen);
  const std::uint32_t digits = put_number(static_cast<std::uint64_t>(sys::getpid()), own);
  if (size != static_cast<long>(digits)) return false;
  for (std::uint32_t i = 0; i < digits; ++i)
    if (seen[i] != own[i]) return false;
  constexpr char kProc[] = "/proc/";
  const std::size_t length_of_rest = length(rest);
  if (sizeof kProc + sizeof own + 1 + length_of_rest > room) return false;
  copy(path, kProc, sizeof kProc - 1);
  std::uint32_t used = sizeof kProc - 1;
  used += put_number(load(g_program), path + used);
  path[used++] = '/';
  copy(path + used, rest, length_of_rest + 1);
  return true;
}

void make_own_process_polite() {
  // As the kernel has it, in its first version.
  struct Attributes {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime;
    std::uint64_t deadline;
    std::uint64_t period;
  } attributes{};
  // A filter that the program was started under may end it for what it does not do itself.
  if (sys::call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != 0) return;
  if (sys::call(SYS_sched_getattr, 0, sys::word(&attributes), sizeof attributes, 0) != 0 ||
      attributes.policy != SCHED_OTHER)
    return;
  attributes.size = sizeof attributes;
  attributes.policy = SCHED_BATCH;
  sys::call(SYS_sched_setattr, 0, sys::word(&attributes), 0);
}

}  // namespace karst::runtime
