// What stands between the number of a process and what is done to it.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "base/held_process.h"
#include "base/process_status.h"
#include "collect/inject/memory.h"
#include "collect/inject/threads.h"
#include "collect/inject/tracee.h"

namespace karst::collect {
namespace {

/// A child that sleeps, and goes with the test.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  /// With the number of one that has ended, if the system lets us choose.
  static Sleeper numbered(pid_t number) {
    std::ofstream("/proc/sys/kernel/ns_last_pid") << number - 1 << std::flush;
    return Sleeper();
  }
  ~Sleeper() { end(); }
  Sleeper(Sleeper&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Sleeper& operator=(Sleeper&&) = delete;
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_;
};

long tracer_of(pid_t pid) {
  const auto tracer = ProcessStatus::read("/proc/" + std::to_string(pid) + "/status").number("TracerPid");
  return tracer ? static_cast<long>(*tracer) : -1;
}

struct Tried {
  bool attached = false;
  bool stopped = false;
  int error = 0;
};

Tried try_to_stop(const HeldProcess& process, pid_t thread) {
  return as_tracer([&] {
    Tracee tracee(process, thread);
    Tried tried{tracee.attached(), false, errno};
    if (tried.attached) tried.stopped = tracee.stop(10'000);
    return tried;
  });
}

TEST(ForeignProcess, ItsThreadIsStopped) {
  const Sleeper child;
  const auto held = HeldProcess::open(child.pid());
  ASSERT_TRUE(held) << held.error().message;
  const Tried tried = try_to_stop(*held, child.pid());
  EXPECT_TRUE(tried.attached && tried.stopped);
  EXPECT_EQ(tracer_of(child.pid()), 0);
}

TEST(ForeignProcess, AThreadOfAnotherOneIsNotTouched) {
  const Sleeper target;
  const Sleeper other;
  const auto held = HeldProcess::open(target.pid());
  ASSERT_TRUE(held);
  const Tried tried = try_to_stop(*held, other.pid());
  EXPECT_FALSE(tried.attached);
  EXPECT_EQ(tried.error, ESRCH);
  EXPECT_EQ(tracer_of(other.pid()), 0);
  const auto its = HeldProcess::open(other.pid());
  ASSERT_TRUE(its);
  // A busy machine has not let it come to its sleep yet: one that is stopped never comes there.
  char state = 'R';
  for (int i = 0; i < 10'000 && state == 'R'; ++i) {
    usleep(1000);
    state = its->state(other.pid());
  }
  EXPECT_EQ(state, 'S');
}

TEST(ForeignProcess, ANumberThatIsUsedAgainIsNotTheProcess) {
  Sleeper target;
  const pid_t number = target.pid();
  const auto held = HeldProcess::open(number);
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->is_there());
  EXPECT_TRUE(held->ending());
  target.end();
  EXPECT_FALSE(held->is_there());
  const Sleeper other = Sleeper::numbered(number);
  if (other.pid() != number) GTEST_SKIP() << "the system does not let us choose a number (needs root)";
  EXPECT_FALSE(held->is_there());
  EXPECT_FALSE(held->has_thread(number));
  EXPECT_TRUE(held->threads().empty());
  EXPECT_FALSE(held->ending());
  EXPECT_FALSE(ForeignMemory::open(*held));
  EXPECT_TRUE(mappings_of(*held).empty());
  EXPECT_FALSE(try_to_stop(*held, number).attached);
  EXPECT_EQ(tracer_of(number), 0);
}

TEST(ForeignProcess, AThreadIsNoProcess) {
  const auto held = HeldProcess::open(getpid());
  ASSERT_TRUE(held);
  std::thread([] { EXPECT_FALSE(HeldProcess::open(static_cast<pid_t>(syscall(SYS_gettid)))); }).join();
}

int sleep_in_shared_memory(void*) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) pause();
}

TEST(ForeignProcess, MemoryIsNotThatOfTheProgramThatItBecomes) {
  // The old memory lives on, as a child shares it: what is read there says nothing of the new program.
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    static char s_stack[16384];
    clone(sleep_in_shared_memory, s_stack + sizeof s_stack, CLONE_VM | SIGCHLD, nullptr);
    char word = 0;
    if (read(go[0], &word, 1) == 1) execl("/bin/sleep", "sleep", "100", nullptr);
    _exit(1);
  }
  const auto held = HeldProcess::open(pid);
  ASSERT_TRUE(held);
  const auto memory = ForeignMemory::open(*held);
  ASSERT_TRUE(memory);
  const auto is_its = [&] {
    return as_tracer([&] {
      Tracee tracee(*held, pid);
      return tracee.attached() && tracee.stop(10'000) ? std::optional(memory->is_of(*held, pid)) : std::nullopt;
    });
  };
  EXPECT_EQ(is_its(), true);
  ASSERT_EQ(write(go[1], "", 1), 1);
  std::string name;
  for (int look = 0; look < 10'000 && name != "sleep"; ++look) {
    std::getline(std::ifstream(held->path("comm")), name);
    usleep(1000);
  }
  ASSERT_EQ(name, "sleep");
  int word = 0;
  EXPECT_TRUE(memory->read(reinterpret_cast<std::uint64_t>(&sleep_in_shared_memory), &word, sizeof word));
  EXPECT_EQ(is_its(), false);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  close(go[0]);
  close(go[1]);
}

TEST(ForeignProcess, WhoWaitsInVforkIsLetGo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char word = 0;
    close(ends[1]);
    const pid_t child = vfork();
    if (child == 0) {
      while (read(ends[0], &word, 1) < 0) {
      }
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    _exit(42);
  }
  close(ends[0]);
  const auto held = HeldProcess::open(pid);
  ASSERT_TRUE(held);
  const auto memory = ForeignMemory::open(*held);
  ASSERT_TRUE(memory);
  std::optional<DeepWait> wait;
  for (int look = 0; look < 10'000 && !wait; ++look) {
    wait = deep_wait_of(*held, pid, *memory);
    usleep(1000);
  }
  ASSERT_TRUE(wait);
  EXPECT_TRUE(wait->is_vfork);
  EXPECT_FALSE(wait->is_exec);
  EXPECT_FALSE(as_tracer([&] {
    Tracee tracee(*held, pid);
    return tracee.attached() && tracee.stop(20);
  }));
  EXPECT_EQ(tracer_of(pid), 0);
  close(ends[1]);  // it goes on, and is stopped by nobody
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
}

}  // namespace
}  // namespace karst::collect
