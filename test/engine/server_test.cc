// The server: who may ask, and when it ends. The data itself is api_test's.
#include "engine/server/server.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "engine/server/local_source.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using namespace std::chrono_literals;

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / ("karst-view-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    file_ = directory_ / "app.karst";
    test::SampleTrace sample;
    test::fill_random(sample, {});
    auto writer = writing::TraceWriter::create(file_);
    ASSERT_TRUE(writer.ok());
    sample.write(*writer);
  }
  void TearDown() override {
    read_on();
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
    std::filesystem::remove_all(directory_);
  }
  void read_on() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  // What is read is shown, and nothing more is read until read_on().
  void start_held(bool keep, std::chrono::milliseconds patience = 60s) {
    held_ = true;
    start(keep, patience, {.least_events = 0, .on_part = [this] {
                             std::unique_lock lock(mutex_);
                             changed_.wait(lock, [this] { return !held_; });
                           }});
  }
  void start(bool keep, std::chrono::milliseconds patience = 60s, engine::Preview::Limits preview = {}) {
    auto source = engine::local_source({{file_}, "1", keep, std::move(preview)});
    ASSERT_TRUE(source.ok());
    auto server = engine::Server::start({keep, patience}, std::move(*source));
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
    port_ = server_->port();
    const std::string url = server_->url();
    path_ = url.substr(url.find('/', 8));
    thread_ = std::thread([this] {
      server_->run();
      ended_ = true;
    });
  }
  httplib::Result get(const std::string& path, const httplib::Headers& headers = {}) {
    httplib::Client client("127.0.0.1", port_);
    client.set_connection_timeout(20s);
    client.set_read_timeout(20s);
    return client.Get(path.c_str(), headers);
  }
  // Waits for the trace.
  httplib::Result get_data(const std::string& path) {
    while (true) {
      auto result = get(path_ + path);
      if (!result || result->status != 503) return result;
      std::this_thread::sleep_for(10ms);
    }
  }

  std::filesystem::path directory_;
  std::filesystem::path file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  std::unique_ptr<engine::Server> server_;
  std::thread thread_;
  std::atomic<bool> ended_ = false;
  int port_ = 0;
  std::string path_;  // with the token: "/0123.../"
};

TEST_F(ServerTest, ServesThePageAndItsData) {
  start(true);
  const auto page = get(path_);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_TRUE(page->get_header_value("Content-Type").starts_with("text/html"));
  const std::string policy = page->get_header_value("Content-Security-Policy");
  EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_FALSE(page->has_header("Access-Control-Allow-Origin"));

  const auto trace = get_data("api/trace");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->status, 200);
  EXPECT_NE(trace->body.find("\"calls\":4000"), std::string::npos);
  const auto tiles = get_data("api/tiles?width=64");
  ASSERT_TRUE(tiles);
  EXPECT_EQ(tiles->body.substr(0, 4), "KTIL");
  const auto cut = get_data("api/cut?begin=0&end=500");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->get_header_value("Content-Disposition"), "attachment; filename=\"app-cut.karst\"");
  EXPECT_EQ(get_data("api/nothing")->status, 404);
  EXPECT_EQ(get(path_ + "assets/../../etc/passwd")->status, 404);
  EXPECT_NE(get(path_ + "api/progress")->body.find("\"phase\":\"ready\""), std::string::npos);
}

// A page that is opened shows what the file of a recording has by then; pages that are open hear of it.
TEST_F(ServerTest, AFileThatGrowsIsReadAgainForThePage) {
  auto writer = writing::TraceWriter::create(file_);
  ASSERT_TRUE(writer.ok());
  writer->pack_events();
  reader::Process process;
  process.threads.emplace_back().tid = 7;
  writer->add_processes({&process, 1});
  writer->add_threads(0, process.threads);
  const format::Event call[] = {format::make_event(1000, false, 1), format::make_event(1001, true, 1)};
  writer->add_block(0, 0, 0, 1000, call);
  ASSERT_TRUE(writer->grow().ok());
  writer->flush();
  start(true);
  const auto has = [this](const std::string& path, const std::string& part) {
    const auto answer = get_data(path);
    return answer && answer->body.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has("api/trace", "\"calls\":1,"));
  EXPECT_TRUE(has("api/trace", "\"growing\":true"));
  EXPECT_TRUE(has("api/progress", "\"grown\":false"));
  EXPECT_EQ(get(path_)->status, 200);
  writer->add_block(0, 0, 1, 2000, call);
  writer->flush();
  EXPECT_TRUE(has("api/progress", "\"grown\":true"));
  // A page that is there keeps its numbers.
  EXPECT_TRUE(has("api/trace", "\"calls\":1,"));
  EXPECT_EQ(get(path_ + "index.html")->status, 200);
  EXPECT_TRUE(has("api/trace", "\"calls\":1,"));
  std::string heard;
  httplib::Client page("127.0.0.1", port_);
  page.set_read_timeout(20s);
  std::atomic<bool> begun = false;
  std::thread listener([&] {
    page.Get((path_ + "api/alive").c_str(), [&](const char* data, std::size_t size) {
      heard.append(data, size);
      begun = true;
      return heard.find("event: replaced") == std::string::npos;
    });
  });
  while (!begun) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(get(path_)->status, 200);
  listener.join();
  EXPECT_NE(heard.find("event: replaced"), std::string::npos);
  EXPECT_TRUE(has("api/trace", "\"calls\":2,"));
  EXPECT_TRUE(has("api/progress", "\"grown\":false"));
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_TRUE(has("api/progress", "\"grown\":true"));
  EXPECT_EQ(get(path_)->status, 200);
  EXPECT_TRUE(has("api/trace", "\"growing\":false"));
  EXPECT_TRUE(has("api/progress", "\"grown\":false"));
}

TEST_F(ServerTest, WaitsForTheTraceWhenAskedTo) {
  start(true);
  EXPECT_NE(get(path_ + "api/progress?wait=1")->body.find("\"phase\":\"ready\""), std::string::npos);
  EXPECT_EQ(get(path_ + "api/trace")->status, 200);
}

TEST_F(ServerTest, AnswersThatNobodyWantsAreStopped) {
  start(true);
  ASSERT_NE(get(path_ + "api/progress?wait=1")->body.find("ready"), std::string::npos);
  // Stopped before it comes, as it may be for a page that changes its mind at once.
  EXPECT_EQ(get(path_ + "api/stop?job=one")->status, 200);
  EXPECT_EQ(get(path_ + "api/functions?job=one")->status, 499);
  EXPECT_EQ(get(path_ + "api/functions?job=two")->status, 200);
  EXPECT_EQ(get(path_ + "api/stop")->status, 200);
  EXPECT_EQ(get(path_ + "api/functions")->status, 200);
}

TEST_F(ServerTest, ShowsWhatItHasReadWhileItReads) {
  start_held(true);
  const auto progress = get(path_ + "api/progress?wait=picture");
  ASSERT_TRUE(progress);
  EXPECT_NE(progress->body.find("\"phase\":\"rebuilding\""), std::string::npos) << progress->body;
  EXPECT_EQ(get(path_ + "api/tiles?width=64")->status, 503);  // facts come first
  const auto facts = get(path_ + "api/trace");
  EXPECT_EQ(facts->status, 200);
  EXPECT_NE(facts->body.find("\"reading\":{\"threads_read\":"), std::string::npos);
  EXPECT_EQ(facts->body.find("\"cut\""), std::string::npos);
  const auto tiles = get(path_ + "api/tiles?width=64");
  EXPECT_EQ(tiles->status, 200);
  EXPECT_EQ(tiles->body.substr(0, 4), "KTIL");
  for (const char* about_all : {"functions", "flame", "minimap", "search?q=f", "call?thread=0&index=0", "cut",
                                "tiles?width=64&function=0", "histogram?function=0", "nothing"}) {
    EXPECT_EQ(get(path_ + "api/" + about_all)->status, 503) << about_all;
  }
  EXPECT_EQ(get(path_ + "api/tiles?width=0")->status, 400);
  for (const char* threads : {"1", "", "9999999999,,x,-1,0", ",,,"}) {
    EXPECT_EQ(get(path_ + "api/first?threads=" + threads)->status, 200);
  }
  read_on();
  EXPECT_NE(get(path_ + "api/progress?wait=1")->body.find("\"phase\":\"ready\""), std::string::npos);
  EXPECT_NE(get(path_ + "api/trace")->body.find("\"reading\":null"), std::string::npos);
  EXPECT_EQ(get(path_ + "api/functions")->status, 200);
  EXPECT_EQ(get(path_ + "api/tiles?width=64")->status, 200);
}

TEST_F(ServerTest, EndsWhileItReads) {
  start_held(true);
  ASSERT_NE(get(path_ + "api/progress?wait=picture")->body.find("rebuilding"), std::string::npos);
  ASSERT_EQ(get(path_ + "api/trace")->status, 200);
  server_->stop();  // as Ctrl-C does
  thread_.join();
  EXPECT_TRUE(ended_);
  read_on();
  server_.reset();  // waits for who reads
}

TEST_F(ServerTest, EndsWhenItsPageClosedWhileItReads) {
  start_held(false, 300ms);
  ASSERT_NE(get(path_ + "api/progress?wait=picture")->body.find("rebuilding"), std::string::npos);
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(20s);
  std::string events;
  client.Get((path_ + "api/alive").c_str(), [&](const char* data, std::size_t size) {
    events.append(data, size);
    return events.size() < 60;
  });
  for (int i = 0; i < 400 && !ended_; ++i) std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(ended_);
}

TEST_F(ServerTest, RefusesWhoDoesNotKnowTheToken) {
  start(true);
  std::string wrong = path_;
  wrong[1] = wrong[1] == '0' ? '1' : '0';
  for (const std::string& path :
       {std::string("/"), std::string("/api/trace"), wrong, wrong + "api/trace", path_.substr(0, path_.size() - 1),
        path_.substr(0, 8) + "/", "/" + path_, "/.." + path_}) {
    const auto result = get(path);
    ASSERT_TRUE(result) << path;
    EXPECT_EQ(result->status, 403) << path;
    EXPECT_EQ(result->body.find(path_.substr(1, 32)), std::string::npos) << path;
  }
}

TEST_F(ServerTest, RefusesOtherPagesAndOtherNames) {
  start(true);
  const std::string port = std::to_string(port_);
  const auto status = [&](const httplib::Headers& headers) {
    const auto result = get(path_ + "api/progress", headers);
    return result ? result->status : -1;
  };
  EXPECT_EQ(status({{"Host", "127.0.0.1:" + port}}), 200);
  EXPECT_EQ(status({{"Host", "localhost:" + port}}), 200);
  EXPECT_EQ(status({{"Host", "127.0.0.1"}}), 403);
  EXPECT_EQ(status({{"Host", "127.0.0.1:1"}}), 403);
  EXPECT_EQ(status({{"Host", "evil.example:" + port}}), 403);
  EXPECT_EQ(status({{"Origin", "http://127.0.0.1:" + port}}), 200);
  EXPECT_EQ(status({{"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(status({{"Origin", "null"}}), 403);
  EXPECT_EQ(status({{"Origin", "https://127.0.0.1:" + port}}), 403);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "same-origin"}}), 200);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "none"}}), 200);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "same-site"}}), 403);
  httplib::Client client("127.0.0.1", port_);
  const auto posted = client.Post((path_ + "api/trace").c_str(), "", "text/plain");
  EXPECT_TRUE(!posted || posted->status >= 400);
}

TEST_F(ServerTest, ListensOnLoopbackAlone) {
  start(true);
  // The address of the socket itself: /proc/net/tcp has it in hexadecimal, and 10 is "listening".
  char want[32];
  std::snprintf(want, sizeof want, "%04X", static_cast<unsigned>(port_));
  int seen = 0;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t colon = line.find(std::string(":") + want + " ");
      if (colon == std::string::npos || line.find(" 0A ") == std::string::npos || colon > 30) continue;
      ++seen;
      EXPECT_NE(line.find(std::string("0100007F:") + want), std::string::npos) << line;
    }
  }
  EXPECT_EQ(seen, 1);
}

TEST_F(ServerTest, EndsWhenTheLastPageClosed) {
  start(false, 300ms);
  std::this_thread::sleep_for(600ms);
  EXPECT_FALSE(ended_);  // nobody came yet
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(20s);
  std::string events;
  client.Get((path_ + "api/alive").c_str(), [&](const char* data, std::size_t size) {
    events.append(data, size);
    return events.size() < 60;  // then the page closes
  });
  EXPECT_NE(events.find("event: progress\ndata: {\"phase\":"), std::string::npos);
  for (int i = 0; i < 400 && !ended_; ++i) std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(ended_);
}

TEST_F(ServerTest, TellsWhyATraceCannotBeShown) {
  std::ofstream(file_) << "this is no trace";
  start(true);
  for (int i = 0; i < 1000; ++i) {
    const auto progress = get(path_ + "api/progress");
    ASSERT_TRUE(progress);
    if (progress->body.find("\"phase\":\"failed\"") != std::string::npos) break;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_NE(get(path_ + "api/progress")->body.find("app.karst"), std::string::npos);
  const auto trace = get(path_ + "api/trace");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->status, 503);
  EXPECT_NE(trace->body.find("app.karst"), std::string::npos);
  EXPECT_EQ(get(path_)->status, 200);  // the page itself, which shows it
  EXPECT_FALSE(server_->failure().empty());
}

}  // namespace
}  // namespace karst
