// What a sandbox lets through, and what becomes of work that goes wrong in it.
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "sandbox/sandbox_helper.h"
#include "symbols/resolve.h"
#include "test/symbols/fixture.h"

namespace karst::sandbox {
namespace {

using namespace symbols::test;

/// Not raise(): it may send no signal, not even to itself.
void fault() {
  volatile std::uintptr_t nowhere = 8;
  *reinterpret_cast<volatile int*>(nowhere) = 1;  // NOLINT(performance-no-int-to-ptr)
}

/// Why there is no answer; empty: there is one.
std::string failure(const SandboxOptions& options, const std::function<void(AnswerWriter&)>& work) {
  const auto answer = in_sandbox(options, work);
  return answer ? std::string() : answer.error().message;
}

/// errno of a call in a sandbox; 0: it is allowed.
int error_of(const std::function<bool()>& call, const SandboxOptions& options = {}) {
  const auto answer = in_sandbox(options, [&](AnswerWriter& out) {
    errno = 0;
    const bool good = call();
    out.number(good ? 0 : static_cast<std::uint64_t>(errno));
  });
  if (!answer) {
    ADD_FAILURE() << answer.error().message;
    return -1;
  }
  return static_cast<int>(AnswerReader(*answer).number());
}

TEST(Sandbox, GivesBackWhatTheWorkWrote) {
  const std::string large(std::size_t{5} << 20, 'x');
  const auto answer = in_sandbox({}, [&](AnswerWriter& out) {
    out.number(7);
    out.text("a text");
    out.text(large);
    out.text("");
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  AnswerReader in(*answer);
  EXPECT_EQ(in.number(), 7U);
  EXPECT_EQ(in.text(), "a text");
  EXPECT_FALSE(in.is_whole());
  EXPECT_EQ(in.text(), large);
  EXPECT_EQ(in.text(), "");
  EXPECT_TRUE(in.is_whole());
  EXPECT_EQ(in.number(), 0U);
  EXPECT_FALSE(in.is_whole());
}

TEST(Sandbox, AnAnswerThatLiesIsNotBelieved) {
  std::vector<std::byte> bytes(16, std::byte{0xff});
  AnswerReader text(bytes);
  EXPECT_EQ(text.text(), "") << "a size beyond the answer";
  EXPECT_EQ(text.number(), 0U);
  EXPECT_FALSE(text.is_whole());
  AnswerReader count(bytes);
  EXPECT_EQ(count.count(1), 0U) << "more things than bytes";
  EXPECT_FALSE(count.is_whole());
}

TEST(Sandbox, AFaultCostsTheAnswerAlone) {
  EXPECT_NE(failure({}, [](AnswerWriter&) { fault(); }).find("signal 11"), std::string::npos);
  EXPECT_NE(failure({}, [](AnswerWriter&) { abort(); }).find("signal "), std::string::npos);
  EXPECT_EQ(failure({}, [](AnswerWriter&) { throw std::bad_alloc(); }), "there is no memory to read it");
  EXPECT_EQ(failure({}, [](AnswerWriter&) { _exit(0); }), "its reader gave no answer");
  EXPECT_NE(failure({},
                    [](AnswerWriter& out) {
                      out.text(std::string(100'000, 'x'));
                      fault();
                    })
                .find("signal 11"),
            std::string::npos)
      << "half an answer is none";
}

TEST(Sandbox, AFileThatBecameShorterIsSaid) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "short";
  write_file(path, "x");
  const std::string why = failure({}, [&](AnswerWriter& out) {
    const int fd = open_regular(path.c_str());
    const auto* bytes = static_cast<const volatile char*>(mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE, fd, 0));
    out.number(static_cast<std::uint64_t>(bytes[4096]));
  });
  EXPECT_NE(why.find("became shorter"), std::string::npos) << why;
}

TEST(Sandbox, WorkThatHangsOrSaysTooMuchIsEnded) {
  const auto hang = [](AnswerWriter&) {
    for (;;) sched_yield();
  };
  EXPECT_EQ(failure({.patience = std::chrono::seconds(1)}, hang), "reading it took too long");
  EXPECT_NE(failure({.most = 1000}, [](AnswerWriter& out) { out.text(std::string(100'000, 'x')); }).find("1000 bytes"),
            std::string::npos);
}

TEST(Sandbox, ReadsFilesAndDoesNothingElse) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  write_file(path, "content");
  EXPECT_EQ(error_of([&] {
              char text[16] = {};  // not by a stream, whose checks by UBSan need a pipe
              const int fd = open(path.c_str(), O_RDONLY);
              return read(fd, text, sizeof text) == 7 && std::string_view(text) == "content";
            }),
            0);
  EXPECT_EQ(error_of([&] { return open(path.c_str(), O_RDWR) >= 0; }), EPERM);
  EXPECT_EQ(error_of([&] { return open(path.c_str(), O_WRONLY | O_TRUNC) >= 0; }), EPERM);
  EXPECT_EQ(error_of([&] { return open(directory.path().c_str(), O_TMPFILE | O_RDWR, 0600) >= 0; }), EPERM);
  EXPECT_EQ(error_of([&] { return unlink(path.c_str()) == 0; }), EPERM);
  EXPECT_EQ(error_of([] { return socket(AF_INET, SOCK_STREAM, 0) >= 0; }), EPERM);
  EXPECT_EQ(error_of([] { return fork() >= 0; }), EPERM);
  EXPECT_EQ(error_of([] { return kill(getppid(), 0) == 0; }), EPERM);
  EXPECT_EQ(error_of([] {
              return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
            }),
            EPERM);
}

TEST(Sandbox, HasNoDescriptorAndNoArenaOfTheCaller) {
  const int fd = memfd_create("karst-arena", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(shared, MAP_FAILED);
  EXPECT_NE(failure({}, [&](AnswerWriter&) { *static_cast<volatile char*>(shared) = 1; }).find("signal 11"),
            std::string::npos);
  EXPECT_EQ(*static_cast<volatile char*>(shared), 0);
  EXPECT_EQ(error_of([&] { return fcntl(fd, F_GETFD) >= 0; }), EBADF);
  EXPECT_EQ(error_of([&] { return fcntl(fd, F_GETFD) >= 0; }, {.keep = {fd}}), 0);
  munmap(shared, 4096);
  close(fd);
}

TEST(Sandbox, AHelperHasNoMoreRights) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "file";
  write_file(path, "content");
  SandboxOptions options{.helper = true};
  if (geteuid() == 0) options.as = Credentials{65534, 65534};
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  const auto answer = in_sandbox(options, [&](AnswerWriter& out) {
    const auto call = [&] {
      std::vector<std::uint64_t> seen;
      seen.push_back(static_cast<std::uint64_t>(gettid()));
      seen.push_back(getuid());
      for (const auto& forbidden : std::vector<std::function<bool()>>{
               [&] { return open(path.c_str(), O_RDWR) >= 0; },
               [] { return socket(AF_INET, SOCK_STREAM, 0) >= 0; },
               [] { return fork() >= 0; },
           }) {
        errno = 0;
        seen.push_back(forbidden() ? 0 : static_cast<std::uint64_t>(errno));
      }
      return seen;
    };
    std::vector<std::uint64_t> first;
    std::vector<std::uint64_t> second;
    side_by_side([&] { first = call(); }, [&] { second = call(); });
    for (const auto* seen : {&first, &second})
      for (const std::uint64_t value : *seen) out.number(value);
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  AnswerReader in(*answer);
  std::vector<std::uint64_t> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.push_back(in.number());
    EXPECT_EQ(in.number(), options.as ? options.as->uid : getuid());
    for (int call = 0; call < 3; ++call) EXPECT_EQ(in.number(), std::uint64_t{EPERM}) << thread << ", call " << call;
  }
  EXPECT_TRUE(in.is_whole());
  EXPECT_EQ(threads[0] != threads[1], std::thread::hardware_concurrency() > 1);
}

TEST(Sandbox, WhatEitherHalfThrowsIsThrownWhenBothHaveEnded) {
  for (const bool helper : {false, true}) {
    const auto failure_of = [&](bool first, bool second) {
      return failure({.helper = helper}, [=](AnswerWriter& out) {
        int done = 0;
        int others = 0;
        const auto half = [](bool fails, int& count) {
          for (int i = 0; i < 1000; ++i) ++count;
          if (fails) throw std::bad_alloc();
        };
        for (int round = 0; round < 100; ++round) {
          try {
            side_by_side([&] { half(first && round == 50, done); }, [&] { half(second && round == 50, others); });
          } catch (const std::bad_alloc&) {
            if (round == 50 && (!helper || (done == 51'000 && others == 51'000))) throw;
            throw std::runtime_error("too early");
          }
        }
        if (done != 100'000 || others != 100'000) throw std::runtime_error("not all was done");
        out.number(1);
      });
    };
    EXPECT_EQ(failure_of(false, false), "");
    EXPECT_EQ(failure_of(true, false), "there is no memory to read it");
    EXPECT_EQ(failure_of(false, true), "there is no memory to read it");
    EXPECT_EQ(failure_of(true, true), "there is no memory to read it");
  }
  EXPECT_NE(failure({.helper = true}, [](AnswerWriter&) { side_by_side([] {}, fault); }).find("signal 11"),
            std::string::npos);
}

TEST(Sandbox, IsRefusedAndEndedWhenInterrupted) {
  stop_lookups = true;
  EXPECT_EQ(failure({}, [](AnswerWriter&) {}), "interrupted");
  stop_lookups = false;
  signal(SIGALRM, [](int) { stop_lookups = true; });
  alarm(1);
  EXPECT_EQ(failure({},
                    [](AnswerWriter&) {
                      for (;;) sched_yield();
                    }),
            "interrupted");
  signal(SIGALRM, SIG_DFL);
  stop_lookups = false;
}

/// Gives the question back; the words are what it does first.
void echo(std::span<const std::byte> question, AnswerWriter& answer) {
  const std::string_view text(reinterpret_cast<const char*>(question.data()), question.size());
  if (text == "late")
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
         std::chrono::steady_clock::now() < until;)
      sched_yield();
  if (text == "fault") fault();
  answer.text(text);
}

TEST(AskedSandbox, AnswersOneQuestionAfterAnother) {
  using std::chrono_literals::operator""ms;
  using std::chrono_literals::operator""s;
  auto sandbox = AskedSandbox::start({.most = std::size_t{3} << 20}, echo);
  ASSERT_TRUE(sandbox);
  const auto ask = [&](std::string_view question, std::chrono::milliseconds patience = 10s) {
    const auto answer = sandbox->ask(std::as_bytes(std::span(question.data(), question.size())), patience);
    return answer ? std::string(AnswerReader(*answer).text()) : "none: " + answer.error().message;
  };
  EXPECT_EQ(ask("one"), "one");
  EXPECT_EQ(ask(""), "");
  const std::string large(std::size_t{2} << 20, 'x');
  EXPECT_EQ(ask(large), large);
  // Late answers are no other question's.
  const std::string none = "none: its reader gave no answer in time";
  EXPECT_EQ(ask("late", 20ms), none);
  EXPECT_EQ(ask("late", 20ms), none);
  EXPECT_EQ(ask("two"), "two");
  AskedSandbox other = std::move(*sandbox);
  *sandbox = std::move(other);
  EXPECT_EQ(ask("three"), "three");
  // No more than was said, and none of one that is gone.
  const std::string more(std::size_t{4} << 20, 'x');
  EXPECT_EQ(ask(more), none);
  EXPECT_EQ(ask("four"), none);
  sandbox = AskedSandbox::start({}, echo);
  ASSERT_TRUE(sandbox);
  EXPECT_EQ(ask("fault"), none);
  EXPECT_EQ(ask("five"), none);
}

TEST(Sandbox, RootReadsWithTheRightsOfTheProgramsUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: there are no other rights to take";
  TemporaryDirectory directory;
  const auto secret = directory.path() / "secret";
  write_file(secret, "root's own");
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  const SandboxOptions nobody{.as = Credentials{65534, 65534}};
  EXPECT_EQ(error_of([&] { return open_regular(secret.c_str()) >= 0; }), 0);
  EXPECT_EQ(error_of(
                [&] {
                  const int fd = open_regular(secret.c_str());
                  errno = fd < 0 ? -fd : 0;
                  return fd >= 0;
                },
                nobody),
            EACCES);
  EXPECT_EQ(error_of([] { return getuid() == 65534; }, nobody), 0);

  // As `#line 1 "/etc/shadow"` in a program of somebody else's would have it.
  reader::Process process;
  process.functions.resize(2);
  process.functions[1].id = 1;
  process.functions[1].file = secret.string();
  EXPECT_EQ(symbols::collect_sources({&process, 1}).files.size(), 1U);
  const symbols::Sources sources = symbols::collect_sources({&process, 1}, {}, nobody.as);
  EXPECT_TRUE(sources.files.empty());
  ASSERT_EQ(sources.problems.size(), 1U);
  EXPECT_NE(sources.problems[0].message.find("Permission denied"), std::string::npos) << sources.problems[0].message;
}

TEST(Sandbox, AnotherUsersModuleNeitherTakesFromTheCacheNorAddsToIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: there are no other rights to take";
  TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  const auto module = directory.path() / "app";
  write_file(module, read_file(fixture("optimised")));
  const std::string id(load_fixture("optimised").build_id());
  const symbols::Cache cache(directory.path() / "cache");
  symbols::ResolveOptions ours;
  ours.cache = cache;
  ours.debug = {};
  const symbols::ResolveOptions theirs = ours.with(Credentials{65534, 65534});
  const auto table = theirs.table({module, id});
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_FALSE(cache.find(id).has_value());
  ASSERT_TRUE(ours.table({module, id}).ok());
  EXPECT_TRUE(cache.find(id).has_value());
  std::filesystem::remove(module);
  EXPECT_FALSE(theirs.table({module, id}).ok()) << "a build-id is what a file says of itself";
}

TEST(OpenRegular, OpensNothingButFilesOfData) {
  TemporaryDirectory directory;
  const auto file = directory.path() / "file";
  write_file(file, "x");
  const int fd = open_regular(file.c_str());
  EXPECT_GE(fd, 0);
  close(fd);
  std::filesystem::create_symlink(file, directory.path() / "link");
  const int through = open_regular((directory.path() / "link").c_str());
  EXPECT_GE(through, 0);
  close(through);
  EXPECT_EQ(open_regular((directory.path() / "link").c_str(), O_NOFOLLOW), -EINVAL);
  EXPECT_EQ(open_regular((directory.path() / "none").c_str()), -ENOENT);
  EXPECT_EQ(open_regular(directory.path().c_str()), -EINVAL);
  const auto fifo = directory.path() / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(open_regular(fifo.c_str()), -EINVAL);
  EXPECT_EQ(open_regular("/dev/null"), -EINVAL);
  EXPECT_EQ(open_regular("/proc/self/environ"), -EINVAL);
  EXPECT_EQ(open_regular("/proc/self/mem"), -EINVAL);
}

}  // namespace
}  // namespace karst::sandbox
