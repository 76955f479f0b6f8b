// SPDX-License-Identifier: MIT
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/fork_lock.h"
#include "base/process_maps.h"
#include "sandbox/read_whole.h"
#include "sandbox/sandbox_helper.h"

namespace karst::sandbox {
namespace {

constexpr std::size_t kBuffer = std::size_t{64} << 10;
constexpr int kAnswer = 250;  // the descriptor of the answer, in the sandbox: the filter knows it
constexpr std::uint64_t kWhole = 0x656c6f6877206c6cU;  // ends an answer that was not cut
/// The greatest file that it may make: a copy in memory of debug sections that were compressed (plain_sections.cc).
constexpr rlim_t kMaxFile = rlim_t{8} << 30;
enum ExitStatus : int {
  kDone = 0,
  kNoMemory = 120,
  kNoRights = 121,
  kNoFilter = 122,
  kThrew = 123,
  kNoDescriptor = 124
};

// libseccomp's macros for these leave out a field, which clang warns of.
constexpr scmp_arg_cmp equal(unsigned argument, scmp_datum_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }
constexpr scmp_arg_cmp none_of(unsigned argument, scmp_datum_t bits) { return {argument, SCMP_CMP_MASKED_EQ, bits, 0}; }

bool allow_if(scmp_filter_ctx filter, int call, scmp_arg_cmp condition) {
  return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &condition) == 0;
}

/// Everything else is answered with EPERM, as if there were no such thing. Empty: it cannot be made.
std::vector<sock_filter> make_filter() {
  const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (filter == nullptr) return {};
  bool good = true;
  for (const int call :
       {SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(readv), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(fstat),
        SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(fstatfs), SCMP_SYS(readlink),
        SCMP_SYS(readlinkat), SCMP_SYS(getcwd), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
        SCMP_SYS(fcntl), SCMP_SYS(dup), SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
        SCMP_SYS(futex), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask),
        SCMP_SYS(rt_sigaction), SCMP_SYS(sigaltstack), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(geteuid),
        SCMP_SYS(getuid), SCMP_SYS(getrandom), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(sched_yield),
        SCMP_SYS(sysinfo), SCMP_SYS(restart_syscall),
        // A copy in memory of a module with unpacked sections: all other descriptors are for reading.
        SCMP_SYS(memfd_create), SCMP_SYS(pwrite64)})
    good = good && seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0;
  good = good && allow_if(filter, SCMP_SYS(write), equal(0, static_cast<scmp_datum_t>(kAnswer)));
  constexpr scmp_datum_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE;
  // O_TMPFILE has the bit of O_DIRECTORY in it, which may stay.
  constexpr scmp_datum_t kForbidden = kWriting & ~scmp_datum_t{O_DIRECTORY};
  good = good && allow_if(filter, SCMP_SYS(open), none_of(1, kForbidden));
  good = good && allow_if(filter, SCMP_SYS(openat), none_of(2, kForbidden));
  good = good && allow_if(filter, SCMP_SYS(mmap), none_of(2, PROT_EXEC));
  good = good && allow_if(filter, SCMP_SYS(mprotect), none_of(2, PROT_EXEC));
  const int file = ::memfd_create("karst-filter", MFD_CLOEXEC);
  good = good && file >= 0 && seccomp_export_bpf(filter, file) == 0;
  seccomp_release(filter);
  struct stat status {};
  good = good && ::fstat(file, &status) == 0;
  std::vector<sock_filter> program(good ? static_cast<std::size_t>(status.st_size) / sizeof(sock_filter) : 0);
  const auto size = static_cast<ssize_t>(program.size() * sizeof(sock_filter));
  if (::pread(file, program.data(), static_cast<std::size_t>(size), 0) != size) program.clear();
  if (file >= 0) ::close(file);
  return program;
}

/// To make it takes a millisecond, which would be that of each sandbox.
const std::vector<sock_filter>& filter() {
  static const std::vector<sock_filter> program = make_filter();
  return program;
}

/// For all threads.
bool load_filter() {
  const std::vector<sock_filter>& program = filter();
  const sock_fprog loaded{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  return !program.empty() && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &loaded) == 0;
}

void limit(int what, rlim_t most) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource>(what), &now) != 0) return;
  now.rlim_max = std::min(now.rlim_max, most);
  now.rlim_cur = std::min(now.rlim_cur, now.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource>(what), &now);
}

/// Address space and data: what we have, and as much again as the machine has memory.
void limit_memory() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re"); file != nullptr) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  const long all = ::sysconf(_SC_PHYS_PAGES);
  const long size = ::sysconf(_SC_PAGESIZE);
  if (pages == 0 || all <= 0 || size <= 0) return;
  limit(RLIMIT_AS, (static_cast<rlim_t>(pages) + static_cast<rlim_t>(all)) * static_cast<rlim_t>(size));
}

void set_limits(const SandboxOptions& options) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NPROC, 0);
  limit(RLIMIT_FSIZE, kMaxFile);
  limit(RLIMIT_NOFILE, 256);
  limit(RLIMIT_CPU, static_cast<rlim_t>(options.cpu_time.count()));
  limit_memory();
}

/// The arenas of traced programs are mapped here, too: they may be written to.
void unmap_arenas() {
  for (const Mapping& m : read_maps("/proc/self/maps"))
    if (m.path.starts_with("/memfd:"))
      ::munmap(reinterpret_cast<void*>(m.begin), m.end - m.begin);  // NOLINT(performance-no-int-to-ptr)
}

/// If memory becomes short, this process goes first.
void offer_to_the_oom_killer() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(!::write(fd, "1000", 4));
  ::close(fd);
}

void close_all_but(std::vector<int> kept) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3 && null >= 0; ++fd)
    if (std::find(kept.begin(), kept.end(), fd) == kept.end()) ::dup2(null, fd);
  std::sort(kept.begin(), kept.end());
  unsigned from = 3;
  for (const int fd : kept) {
    if (fd < 3) continue;
    const auto here = static_cast<unsigned>(fd);
    if (here > from) ::syscall(SYS_close_range, from, here - 1, 0);
    from = here + 1;
  }
  ::syscall(SYS_close_range, from, ~0U, 0);
}

bool take_rights(const std::optional<Credentials>& as) {
  if (!as) return true;
  return ::setgroups(as->groups.size(), as->groups.data()) == 0 && ::setresgid(as->gid, as->gid, as->gid) == 0 &&
         ::setresuid(as->uid, as->uid, as->uid) == 0;
}

[[noreturn]] void be_the_child(const SandboxOptions& options, int answer, pid_t parent,
                               const std::function<void(AnswerWriter&)>& work) {
  // The caller says what becomes of Ctrl-C. Faults are to end this process, whatever the caller does at one.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE}) ::signal(signal, SIG_IGN);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGXFSZ}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  offer_to_the_oom_killer();
  unmap_arenas();
  std::vector<int> kept = options.keep;
  if (::dup2(answer, kAnswer) < 0) ::_exit(kNoDescriptor);
  kept.push_back(kAnswer);
  close_all_but(kept);
  if (options.helper) start_helper();  // all that follows is for both threads
  set_limits(options);
  if (!take_rights(options.as)) ::_exit(kNoRights);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // behind the change of user, which takes it back
  if (::getppid() != parent) ::_exit(kDone);
  if (!load_filter()) ::_exit(kNoFilter);
  AnswerWriter out(kAnswer);
  try {
    work(out);
  } catch (const std::bad_alloc&) {
    ::_exit(kNoMemory);
  } catch (...) {
    ::_exit(kThrew);
  }
  out.number(kWhole);
  ::_exit(out.flush() ? kDone : kThrew);
}

std::string ending(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGBUS) return "its reader died by SIGBUS: the file became shorter while it was read, or is damaged";
    if (signal == SIGXCPU) return "reading it took too long";
    if (signal == SIGKILL) return "its reader was killed, perhaps as memory was short";
    return "its reader died by signal " + std::to_string(signal) + " (" + ::strsignal(signal) +
           "): the file is damaged, or this is a bug of Karst or a library";
  }
  switch (WEXITSTATUS(status)) {
    case kNoMemory:
      return "there is no memory to read it";
    case kNoRights:
      return "the rights of the traced process's user cannot be taken";
    case kNoDescriptor:
      return "the process that would read it may have too few descriptors (ulimit -n)";
    case kNoFilter:
      return "the process that would read it cannot be confined (seccomp)";
    default:
      return "its reader gave no answer";
  }
}

/// Reads the answer until its end, a limit, or Ctrl-C. Empty string: it ended.
std::string read_answer(int fd, const SandboxOptions& options, std::vector<std::byte>& answer) {
  const auto give_up = std::chrono::steady_clock::now() + options.patience;
  std::size_t size = 0;
  for (;;) {
    if (stop_lookups) return "interrupted";
    if (std::chrono::steady_clock::now() > give_up) return "reading it took too long";
    pollfd ready{fd, POLLIN, 0};
    constexpr int kLook = 50;  // a signal between the look and the wait is seen that late
    if (::poll(&ready, 1, kLook) <= 0) continue;
    if (answer.size() == size) answer.resize(std::max(2 * size, kBuffer));
    const ssize_t n = ::read(fd, answer.data() + size, answer.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
    if (size > options.most) return "what was read of it takes more than " + std::to_string(options.most) + " bytes";
  }
  answer.resize(size);
  return {};
}

}  // namespace

void AnswerWriter::put(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(bytes);
  buffer_.insert(buffer_.end(), from, from + size);
  if (fd_ >= 0 && buffer_.size() >= kBuffer) flush();
}

void AnswerWriter::number(std::uint64_t value) { put(&value, sizeof value); }

void AnswerWriter::text(std::span<const std::byte> bytes) {
  number(bytes.size());
  if (fd_ < 0 || bytes.size() < kBuffer) return put(bytes.data(), bytes.size());
  flush();
  while (!bytes.empty() && !failed_) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    failed_ = n <= 0;
    if (!failed_) bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void AnswerWriter::text(std::string_view text) { this->text(std::as_bytes(std::span(text.data(), text.size()))); }

bool AnswerWriter::flush() {
  std::span<const std::byte> rest = buffer_;
  while (!rest.empty() && !failed_) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    failed_ = n <= 0;
    if (!failed_) rest = rest.subspan(static_cast<std::size_t>(n));
  }
  buffer_.clear();
  return !failed_;
}

std::uint64_t AnswerReader::number() {
  std::uint64_t value = 0;
  if (rest_.size() < sizeof value) failed_ = true;
  if (failed_) return 0;
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_ = rest_.subspan(sizeof value);
  return value;
}

std::span<const std::byte> AnswerReader::bytes() {
  const std::uint64_t size = number();
  if (size > rest_.size()) failed_ = true;
  if (failed_) return {};
  const auto found = rest_.first(size);
  rest_ = rest_.subspan(size);
  return found;
}

std::string_view AnswerReader::text() {
  const auto found = bytes();
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

std::uint64_t AnswerReader::count(std::size_t size) {
  const std::uint64_t found = number();
  if (found > rest_.size() / size) failed_ = true;
  return failed_ ? 0 : found;
}

namespace {

struct Started {
  pid_t child;
  Descriptor answers;
};

Result<Started> start_child(const SandboxOptions& options, const std::function<void(AnswerWriter&)>& work) {
  if (stop_lookups) return Error{"interrupted"};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
  Descriptor answers(ends[0]);
  const Descriptor write_end(ends[1]);
  ::fcntl(answers.get(), F_SETPIPE_SZ, 1 << 20);
  const pid_t parent = ::getpid();
  static_cast<void>(filter());  // made here, for all
  pid_t child = 0;
  int error = 0;
  {
    const std::lock_guard alone(fork_lock());
    child = ::fork();
    error = errno;
  }
  if (child == 0) be_the_child(options, write_end.get(), parent, work);
  if (child < 0) return Error{std::string("cannot start a process to read it: ") + std::strerror(error)};
  return Started{child, std::move(answers)};
}

/// Its status; 0 where that is not told, as whoever started us ignores SIGCHLD.
int wait_for(pid_t child) {
  int status = 0;
  pid_t waited = 0;
  do waited = ::waitpid(child, &status, 0);
  while (waited < 0 && errno == EINTR);
  return waited < 0 ? 0 : status;
}

}  // namespace

Result<std::vector<std::byte>> in_sandbox(const SandboxOptions& options,
                                          const std::function<void(AnswerWriter&)>& work) {
  const auto started = start_child(options, work);
  if (!started) return started.error();
  std::vector<std::byte> answer;
  std::string problem = read_answer(started->answers.get(), options, answer);
  if (!problem.empty()) ::kill(started->child, SIGKILL);
  const int status = wait_for(started->child);  // an answer's end says whether it is whole
  if (!problem.empty()) return Error{std::move(problem)};
  if (status != 0 || answer.size() < sizeof kWhole) return Error{ending(status)};
  std::uint64_t end = 0;
  std::memcpy(&end, answer.data() + answer.size() - sizeof end, sizeof end);
  if (end != kWhole) return Error{ending(status)};
  answer.resize(answer.size() - sizeof end);
  return answer;
}

namespace {

using SteadyClock = std::chrono::steady_clock;

/// False: it cannot be read or written by then.
bool wait_until(int fd, short events, SteadyClock::time_point until) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - SteadyClock::now()).count();
    if (left < 0 || stop_lookups) return false;
    constexpr long kLook = 50;  // as in read_answer()
    pollfd ready{fd, events, 0};
    if (::poll(&ready, 1, static_cast<int>(std::min(left + 1, kLook))) > 0) return true;
  }
}

bool read_until(int fd, void* into, std::size_t size, SteadyClock::time_point until) {
  return read_whole(fd, into, size, [=] { return wait_until(fd, POLLIN, until); });
}

bool send_all(int fd, const void* from, std::size_t size, SteadyClock::time_point until) {
  const auto* at = static_cast<const std::byte*>(from);
  while (size != 0) {
    if (!wait_until(fd, POLLOUT, until)) return false;
    const ssize_t n = ::send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

Result<AskedSandbox> AskedSandbox::start(const SandboxOptions& options, const Work& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{std::string("cannot make a socket: ") + std::strerror(errno)};
  Descriptor questions(ends[0]);
  const Descriptor asked(ends[1]);
  SandboxOptions with = options;
  with.keep.push_back(asked.get());
  auto started = start_child(with, [&](AnswerWriter& out) {
    std::vector<std::byte> question;
    // Without a limit, as a sandbox may not poll().
    for (std::uint64_t size = 0; read_whole(asked.get(), &size, sizeof size);) {
      question.resize(size);
      if (!read_whole(asked.get(), question.data(), size)) return;
      AnswerWriter answer;
      work(question, answer);
      out.text(answer.bytes());
      if (!out.flush()) return;
    }
  });
  if (!started) return started.error();
  return AskedSandbox(started->child, std::move(started->answers), std::move(questions), options.most);
}

AskedSandbox::AskedSandbox(pid_t child, Descriptor answers, Descriptor questions, std::size_t most)
    : child_(child), answers_(std::move(answers)), questions_(std::move(questions)), most_(most) {}
AskedSandbox::AskedSandbox(AskedSandbox&& other) noexcept
    : child_(std::exchange(other.child_, 0)),
      answers_(std::move(other.answers_)),
      questions_(std::move(other.questions_)),
      most_(other.most_),
      late_(other.late_) {}
AskedSandbox& AskedSandbox::operator=(AskedSandbox&& other) noexcept {
  end();
  child_ = std::exchange(other.child_, 0);
  answers_ = std::move(other.answers_);
  questions_ = std::move(other.questions_);
  most_ = other.most_;
  late_ = other.late_;
  return *this;
}
AskedSandbox::~AskedSandbox() { end(); }

void AskedSandbox::end() {
  if (child_ == 0) return;
  ::kill(child_, SIGKILL);
  wait_for(std::exchange(child_, 0));
}

Result<std::vector<std::byte>> AskedSandbox::ask(std::span<const std::byte> question,
                                                 std::chrono::milliseconds patience) {
  const auto until = SteadyClock::now() + patience;
  const Error late{"its reader gave no answer in time"};
  if (child_ == 0) return late;
  const std::uint64_t asked = question.size();
  if (!send_all(questions_.get(), &asked, sizeof asked, until) ||
      !send_all(questions_.get(), question.data(), question.size(), until)) {
    end();
    return late;
  }
  for (++late_;; --late_) {
    if (!wait_until(answers_.get(), POLLIN, until)) return late;
    std::uint64_t size = 0;
    std::vector<std::byte> answer;
    bool is_whole = read_until(answers_.get(), &size, sizeof size, until) && size <= most_;
    if (is_whole) answer.resize(size);
    is_whole = is_whole && read_until(answers_.get(), answer.data(), answer.size(), until);
    if (!is_whole) {
      end();
      return late;
    }
    if (late_ != 1) continue;
    late_ = 0;
    return answer;
  }
}

int open_regular(const char* path, int flags, int directory) {
  const int named = ::openat(directory, path, O_PATH | O_CLOEXEC | flags);
  if (named < 0) return -errno;
  struct stat status {};
  struct statfs system {};
  int result = -EINVAL;
  if (::fstat(named, &status) != 0 || ::fstatfs(named, &system) != 0) {
    result = -errno;
  } else if (S_ISREG(status.st_mode)) {
    switch (static_cast<unsigned long>(system.f_type)) {
      case PROC_SUPER_MAGIC:
      case SYSFS_MAGIC:
      case DEBUGFS_MAGIC:
      case TRACEFS_MAGIC:
      case SECURITYFS_MAGIC:
      case CGROUP_SUPER_MAGIC:
      case CGROUP2_SUPER_MAGIC:
      case SELINUX_MAGIC:
      case BPF_FS_MAGIC:
      case PSTOREFS_MAGIC:
      case EFIVARFS_MAGIC:
        break;
      default:
        // The same file, whatever has the name by now.
        result = ::open(("/proc/self/fd/" + std::to_string(named)).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (result < 0) result = -errno;
    }
  }
  ::close(named);
  return result;
}

}  // namespace karst::sandbox
