#include "base/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <string>

namespace karst {
namespace {

ChildProgram shell(const std::string& script) { return {.file = "sh", .words = {"sh", "-c", script}}; }

std::string read_all(const Descriptor& from) {
  std::string text;
  char buffer[256];
  for (ssize_t n = 0; (n = ::read(from.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, std::size_t(n));
  return text;
}

std::string output_of(ChildProgram program) {
  program.output = ChildStream::pipe();
  auto child = ChildProcess::start(program);
  if (!child) return child.error().message;
  std::string text = read_all(child->output());
  child->wait();
  return text;
}

bool is_there(pid_t number) { return ::kill(number, 0) == 0; }

TEST(ChildProcess, TellsHowItEnded) {
  auto child = ChildProcess::start(shell("exit 3"));
  ASSERT_TRUE(child);
  const int status = child->wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(child->number(), 0);
  EXPECT_EQ(child->wait(), status);
}

TEST(ChildProcess, SaysWhatCannotBeExecuted) {
  const auto child = ChildProcess::start({.file = "/no/such\nprogram", .words = {"x"}});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().message, "cannot run /no/such\\nprogram: No such file or directory");
}

TEST(ChildProcess, AnswersThroughPipes) {
  ChildProgram program = shell("cat; echo bad >&2");
  program.input = program.output = program.errors = ChildStream::pipe();
  auto child = ChildProcess::start(program);
  ASSERT_TRUE(child);
  ASSERT_EQ(::write(child->input().get(), "word", 4), 4);
  // Another child must not hold the first one's pipe open.
  auto other = ChildProcess::start(shell("exec sleep 100"));
  ASSERT_TRUE(other);
  EXPECT_TRUE(child->input().close());
  EXPECT_EQ(read_all(child->output()), "word");
  EXPECT_EQ(read_all(child->errors()), "bad\n");
  EXPECT_EQ(child->wait(), 0);
}

TEST(ChildProcess, HasThreeDescriptors) {
  const Descriptor ours(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(output_of(shell("readlink /proc/$$/fd/0 /proc/$$/fd/2; ls /proc/$$/fd | sort -n | head -3 | tr '\\n' ' '; "
                            "test -e /proc/$$/fd/" +
                            std::to_string(ours.get()) + " || echo closed")),
            "/dev/null\n/dev/null\n0 1 2 closed\n");
}

// Each is set after the other, and must not be what was just set.
TEST(ChildProcess, StandardDescriptorsMayChangePlaces) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reads(ends[0]);
  Descriptor writes(ends[1]);
  const Descriptor out(::fcntl(1, F_DUPFD_CLOEXEC, 3)), err(::fcntl(2, F_DUPFD_CLOEXEC, 3));
  const Descriptor null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ::dup2(writes.get(), 1);
  ::dup2(null.get(), 2);
  ChildProgram program = shell("echo out; echo err >&2");
  program.output = ChildStream::ours(2);
  program.errors = ChildStream::ours(1);
  auto child = ChildProcess::start(program);
  ::dup2(out.get(), 1);
  ::dup2(err.get(), 2);
  ASSERT_TRUE(child);
  EXPECT_TRUE(writes.close());
  EXPECT_EQ(read_all(reads), "err\n");
}

TEST(ChildProcess, VariablesStandBesideOursOrInTheirPlace) {
  ::setenv("KARST_TEST_ONE", "ours", 1);
  ::setenv("KARST_TEST_TWO", "ours", 1);
  ChildProgram program = shell("env | grep KARST_TEST | sort");
  program.variables = {"KARST_TEST_TWO=given", "KARST_TEST_THREE="};
  EXPECT_EQ(output_of(program), "KARST_TEST_ONE=ours\nKARST_TEST_THREE=\nKARST_TEST_TWO=given\n");
}

TEST(ChildProcess, HearsSignalsThatWeHold) {
  sigset_t held, before;
  sigemptyset(&held);
  sigaddset(&held, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &held, &before);
  auto child = ChildProcess::start(shell("exec sleep 100"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(child);
  child->kill(SIGTERM);
  const int status = child->wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(ChildProcess, DefaultSignalsActThoughWeIgnoreThem) {
  const auto before = ::signal(SIGUSR1, SIG_IGN);
  ChildProgram program = shell("kill -USR1 $$; echo lives");
  EXPECT_EQ(output_of(program), "lives\n");
  program.default_signals = true;
  EXPECT_EQ(output_of(program), "");
  ::signal(SIGUSR1, before);
}

TEST(ChildProcess, HasAGroupOfItsOwnWhereAsked) {
  ChildProgram program = shell("test $(ps -o pgid= $$) = $$ && echo own");
  EXPECT_EQ(output_of(program), "");
  program.own_group = true;
  EXPECT_EQ(output_of(program), "own\n");
}

TEST(ChildProcess, IsKilledWhenNobodyWaitsForIt) {
  pid_t number = 0;
  {
    auto child = ChildProcess::start(shell("exec sleep 100"));
    ASSERT_TRUE(child);
    ChildProcess moved = std::move(*child);
    number = moved.number();
    EXPECT_EQ(child->number(), 0);
  }
  EXPECT_FALSE(is_there(number));
}

TEST(ChildProcess, OutlivesUsWhereAsked) {
  pid_t number = 0;
  {
    ChildProgram program = shell("exec sleep 100");
    program.outlives_us = true;
    auto child = ChildProcess::start(program);
    ASSERT_TRUE(child);
    number = child->number();
  }
  EXPECT_TRUE(is_there(number));
  ::kill(number, SIGKILL);
  ::waitpid(number, nullptr, 0);
}

TEST(ChildProcess, IsWaitedForForATime) {
  ChildProgram program = shell("read line; exit 2");
  program.input = ChildStream::pipe();
  auto child = ChildProcess::start(program);
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->wait_for(std::chrono::milliseconds(30)).has_value());
  const Descriptor ending = child->ending();
  pollfd ended{ending.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 0), 0);
  EXPECT_TRUE(child->input().close());
  if (ending) {
    EXPECT_EQ(::poll(&ended, 1, 10'000), 1);
  }
  const auto status = child->wait_for(std::chrono::seconds(10));
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(WEXITSTATUS(*status), 2);
}

}  // namespace
}  // namespace karst
