// Runs a command and makes a system call of its own process fail, in whatever thread; not in processes that it makes.
//   fail_calls REPORT count COMMAND...                  writes to REPORT how often each call was made, a line each
//   fail_calls REPORT CALL N ERRNO once|on COMMAND...   lets the Nth CALL fail, or it and all behind it
// REPORT then says "failed" if there was an Nth. Ends with 0; the last line of REPORT is the command's wait status.
// What comes before the program's entry is the dynamic linker's, and is left alone.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <string>

namespace {

[[noreturn]] void give_up(const char* what) {
  perror(what);
  exit(77);
}

std::uint64_t entry_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/auxv";
  FILE* file = fopen(path.c_str(), "re");
  if (file == nullptr) give_up("auxv");
  Elf64_auxv_t entry{};
  std::uint64_t found = 0;
  while (fread(&entry, sizeof entry, 1, file) == 1)
    if (entry.a_type == AT_ENTRY) found = entry.a_un.a_val;
  fclose(file);
  return found;
}

void run_to_entry(pid_t pid) {
  const std::uint64_t entry = entry_of(pid);
  void* const at = reinterpret_cast<void*>(entry);
  errno = 0;
  const long before = ptrace(PTRACE_PEEKTEXT, pid, at, nullptr);
  if (errno != 0 || ptrace(PTRACE_POKETEXT, pid, at, (before & ~0xffL) | 0xcc) != 0) give_up("breakpoint");
  int status = 0;
  if (ptrace(PTRACE_CONT, pid, nullptr, nullptr) != 0 || waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status) ||
      WSTOPSIG(status) != SIGTRAP)
    give_up("the command did not reach its entry");
  user_regs_struct registers{};
  ptrace(PTRACE_GETREGS, pid, nullptr, &registers);
  registers.rip = entry;
  ptrace(PTRACE_SETREGS, pid, nullptr, &registers);
  ptrace(PTRACE_POKETEXT, pid, at, before);
}

void set(pid_t thread, std::size_t field, std::uint64_t value) { ptrace(PTRACE_POKEUSER, thread, field, value); }

}  // namespace

int main(int argc, char** argv) {
  const bool counts = argc > 3 && strcmp(argv[2], "count") == 0;
  if (!counts && argc < 7) return 2;
  const int call = counts ? -1 : seccomp_syscall_resolve_name(argv[2]);
  const long nth = counts ? 0 : atol(argv[3]);
  const int error = counts ? 0 : atoi(argv[4]);
  const bool on = !counts && strcmp(argv[5], "on") == 0;
  char** const command = argv + (counts ? 3 : 6);
  const pid_t first = fork();
  if (first == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    execvp(command[0], command);
    _exit(127);
  }
  int status = 0;
  if (first < 0 || waitpid(first, &status, 0) != first || !WIFSTOPPED(status)) give_up("fork");
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SETOPTIONS, first, nullptr, options) != 0 || ptrace(PTRACE_CONT, first, nullptr, nullptr) != 0 ||
      waitpid(first, &status, 0) != first || status >> 8 != (SIGTRAP | (PTRACE_EVENT_EXEC << 8)))
    give_up("exec");
  run_to_entry(first);
  ptrace(PTRACE_SYSCALL, first, nullptr, nullptr);

  std::map<pid_t, int> failing;  // threads: 0, or the error that their call ends with
  failing[first] = 0;
  std::map<pid_t, std::uint64_t> asked;  // threads in a brk(2) that fails: for which end
  std::map<std::uint64_t, long> made;
  bool failed = false;
  int ended = -1;
  while (true) {
    const pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0) break;
    if (!WIFSTOPPED(status)) {
      if (thread == first) ended = status;
      failing.erase(thread);
      continue;
    }
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      __ptrace_syscall_info info{};
      ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        const long number = ++made[info.entry.nr];
        if (static_cast<int>(info.entry.nr) == call && (number == nth || (on && number > nth))) {
          failed = true;
          // The kernel says no to brk(2) by the end as it is, not by an error.
          if (call == SCMP_SYS(brk)) {
            asked[thread] = info.entry.args[0];
            set(thread, offsetof(user_regs_struct, rdi), 0);
          } else {
            failing[thread] = error;
          }
          // A descriptor is closed also where close(2) fails.
          if (call != SCMP_SYS(close) && call != SCMP_SYS(brk))
            set(thread, offsetof(user_regs_struct, orig_rax), ~std::uint64_t{0});
        }
      } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && asked.count(thread) != 0) {
        set(thread, offsetof(user_regs_struct, rdi), asked[thread]);
        asked.erase(thread);
      } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && failing[thread] != 0) {
        set(thread, offsetof(user_regs_struct, rax), static_cast<std::uint64_t>(-static_cast<long>(failing[thread])));
        failing[thread] = 0;
      }
      signal = 0;
    } else if (status >> 16 != 0) {
      signal = 0;  // a thread was made
    } else if (signal == SIGSTOP && failing.emplace(thread, 0).second) {
      signal = 0;  // its first stop
    }
    ptrace(PTRACE_SYSCALL, thread, nullptr, static_cast<long>(signal));
  }
  FILE* report = fopen(argv[1], "we");
  if (report == nullptr) give_up(argv[1]);
  if (counts) {
    for (const auto& [number, count] : made) {
      char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number));
      if (name != nullptr) fprintf(report, "%s %ld\n", name, count);
      free(name);
    }
  } else if (failed) {
    fputs("failed\n", report);
  }
  fprintf(report, "%d\n", ended);
  return fclose(report) == 0 ? 0 : 1;
}
