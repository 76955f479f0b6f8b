// What is asked in SQL: a program answers, and is ended when nobody waits for it. Here it is a script; e2e tests have
// the real one (query_page.py).
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "engine/server/local_source.h"
#include "engine/server/server.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using namespace std::chrono_literals;

class ServerAsksTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / ("karst-asks-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    write_trace();
  }
  void TearDown() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
    std::filesystem::remove_all(directory_);
  }
  void write_trace() {
    test::SampleTrace sample;
    test::fill_random(sample, {});
    auto writer = writing::TraceWriter::create(directory_ / "new.karst");
    ASSERT_TRUE(writer.ok());
    sample.write(*writer);
    std::filesystem::rename(directory_ / "new.karst", directory_ / "app.karst");
  }
  /// `script`: what answers; empty: nothing does. Says who it is in the file `pid`.
  void start(const std::string& script, engine::AskedLimits limits = {}) {
    const std::filesystem::path program = directory_ / "answers";
    std::ofstream(program) << "#!/bin/sh\necho $$ > " << (directory_ / "pid") << "\n" << script << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    engine::LocalOptions options;
    options.files = {directory_ / "app.karst"};
    options.version = "1";
    options.keep = true;
    if (!script.empty()) options.asked = program;
    options.asked_limits = limits;
    auto source = engine::local_source(std::move(options));
    ASSERT_TRUE(source.ok());
    auto server = engine::Server::start({.keep = true}, std::move(*source));
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
    const std::string url = server_->url();
    path_ = url.substr(url.find('/', 8));
    thread_ = std::thread([this] { server_->run(); });
  }
  httplib::Result get(const std::string& path) {
    while (true) {
      httplib::Client client("127.0.0.1", server_->port());
      client.set_read_timeout(30s);
      auto result = client.Get((path_ + path).c_str());
      if (!result || result->status != 503) return result;
      std::this_thread::sleep_for(10ms);
    }
  }
  /// Waits until the program has said who it is.
  pid_t program() {
    for (int i = 0; i < 1000; ++i, std::this_thread::sleep_for(10ms)) {
      std::ifstream file(directory_ / "pid");
      pid_t pid = 0;
      if (file >> pid) return pid;
    }
    ADD_FAILURE() << "the program was not started";
    return 0;
  }
  static bool ends(pid_t pid) {
    for (int i = 0; i < 1000; ++i, std::this_thread::sleep_for(10ms))
      if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
    return false;
  }

  std::filesystem::path directory_;
  std::unique_ptr<engine::Server> server_;
  std::thread thread_;
  std::string path_;
};

constexpr const char* kForEver = "exec sleep 600";

TEST_F(ServerAsksTest, AProgramAnswers) {
  start(R"(printf '{"words":"%s %s %s","sql":"' "$1" "$2" "$5"; cat; printf '"}')");
  const auto answer = get("api/query?sql=SELECT%201&raw=1");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, R"({"words":"asked query --raw","sql":"SELECT 1"})");
  EXPECT_EQ(get("api/check")->body, R"({"words":"asked check ","sql":""})");
  EXPECT_NE(get("api/trace")->body.find("\"query\""), std::string::npos);
  EXPECT_EQ(get("api/query?trace=1&sql=SELECT")->status, 400);
  EXPECT_EQ(get("api/query?trace=x&sql=SELECT")->status, 400);
}

TEST_F(ServerAsksTest, NothingAnswersWithoutIt) {
  start("");
  EXPECT_EQ(get("api/query?sql=SELECT")->status, 404);
  EXPECT_EQ(get("api/trace")->body.find("\"query\""), std::string::npos);
}

TEST_F(ServerAsksTest, WhoHasNotTheAddressAsksNothing) {
  start("echo {}");
  EXPECT_EQ(get("api/schema")->status, 200);
  std::filesystem::remove(directory_ / "pid");
  path_ = "/0123456789abcdef0123456789abcdef/";
  EXPECT_EQ(get("api/query?sql=SELECT")->status, 403);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "pid"));
}

TEST_F(ServerAsksTest, ErrorsAreTold) {
  start(R"(echo '{"error":"it is so"}')");
  const auto answer = get("api/query?sql=SELECT");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400);
  EXPECT_NE(answer->body.find("it is so"), std::string::npos);
}

TEST_F(ServerAsksTest, AProgramThatDiesIsAnError) {
  start("kill -SEGV $$");
  EXPECT_EQ(get("api/query?sql=SELECT")->status, 500);
  EXPECT_EQ(get("api/trace")->status, 200);
}

TEST_F(ServerAsksTest, OneIsAnsweredAtATime) {
  start(kForEver);
  auto first = std::async(std::launch::async, [this] { return get("api/query?sql=SELECT&job=one")->status; });
  const pid_t pid = program();
  EXPECT_EQ(get("api/check")->status, 429);
  EXPECT_EQ(get("api/stop?job=one")->status, 200);
  EXPECT_EQ(first.get(), 499);
  EXPECT_TRUE(ends(pid));
  std::filesystem::remove(directory_ / "pid");
  auto second = std::async(std::launch::async, [this] { return get("api/check?job=two")->status; });
  EXPECT_NE(program(), 0);
  EXPECT_EQ(get("api/stop?job=two")->status, 200);
  EXPECT_EQ(second.get(), 499);
}

TEST_F(ServerAsksTest, APageThatGoesEndsItsQuestion) {
  start(kForEver);
  EXPECT_EQ(get("api/trace")->status, 200);
  std::atomic<bool> leaves = false;
  std::thread page([&] {
    httplib::Client client("127.0.0.1", server_->port());
    client.Get((path_ + "api/alive?page=mine").c_str(), [&](const char*, std::size_t) { return !leaves; });
  });
  auto asked = std::async(std::launch::async, [this] { return get("api/query?sql=SELECT&job=mine.1")->status; });
  const pid_t pid = program();
  EXPECT_EQ(::kill(pid, 0), 0);
  leaves = true;
  EXPECT_EQ(asked.get(), 499);
  EXPECT_TRUE(ends(pid));
  page.join();
}

TEST_F(ServerAsksTest, WhatTakesTooLongIsEnded) {
  start(kForEver, {.time = 200ms});
  const auto answer = get("api/query?sql=SELECT");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 500);
  EXPECT_NE(answer->body.find("took longer"), std::string::npos);
  EXPECT_TRUE(ends(program()));
}

TEST_F(ServerAsksTest, WhatIsTooLargeIsEnded) {
  start("exec yes", {.bytes = 1 << 20});
  const auto answer = get("api/query?sql=SELECT");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 500);
  EXPECT_NE(answer->body.find("too large"), std::string::npos);
  EXPECT_TRUE(ends(program()));
}

TEST_F(ServerAsksTest, AFileThatWasReplacedIsNotAsked) {
  start("echo {}");
  EXPECT_EQ(get("api/query?sql=SELECT")->status, 200);
  std::filesystem::remove(directory_ / "pid");
  write_trace();
  EXPECT_EQ(get("api/query?sql=SELECT")->status, 409);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "pid"));
}

TEST_F(ServerAsksTest, TheServersEndEndsIt) {
  start(kForEver);
  auto asked = std::async(std::launch::async, [this] { return get("api/query?sql=SELECT").error(); });
  const pid_t pid = program();
  server_->stop();
  thread_.join();
  EXPECT_TRUE(ends(pid));
  asked.get();
}

}  // namespace
}  // namespace karst
