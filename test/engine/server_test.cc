// The server: who may ask, and when it ends. The data itself is api_test's.
#include "engine/server/server.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
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
    engine::LocalOptions options{{file_}, "1", keep, std::move(preview)};
    options.newest_events = newest_events_;
    auto source = engine::local_source(std::move(options));
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
  std::uint64_t newest_events_ = 8'000'000;
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

// A file that is still recorded: a thread that called once, and more() calls.
class GrowingTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    begin();
  }
  void begin() {
    auto created = writing::TraceWriter::create(file_);
    ASSERT_TRUE(created.ok());
    writer_.emplace(std::move(*created));
    writer_->pack_events();
    reader::Process process;
    process.threads.emplace_back().tid = 7;
    writer_->add_processes({&process, 1});
    writer_->add_threads(0, process.threads);
    blocks_ = 0;
    more();
    ASSERT_TRUE(writer_->grow().ok());
    writer_->flush();
  }
  void more() {
    const std::uint64_t at = 1000 * ++blocks_;
    const format::Event call[] = {format::make_event(at, false, 1), format::make_event(at + 1, true, 1)};
    writer_->add_block(0, 0, blocks_ - 1, at, call);
    writer_->flush();
  }
  bool has(const std::string& path, const std::string& part) {
    const auto answer = get_data(path);
    return answer && answer->body.find(part) != std::string::npos;
  }
  /// A page's connection, until it goes out of scope.
  class Page {
   public:
    Page(int port, const std::string& address) : client_("127.0.0.1", port) {
      client_.set_read_timeout(20s);
      thread_ = std::thread([this, address] {
        client_.Get(address.c_str(), [this](const char* data, std::size_t size) {
          const std::lock_guard lock(mutex_);
          heard_.append(data, size);
          return !gone_;
        });
      });
      while (heard().empty()) std::this_thread::sleep_for(1ms);
    }
    ~Page() {
      gone_ = true;
      thread_.join();
    }
    std::string heard() {
      const std::lock_guard lock(mutex_);
      return heard_;
    }

   private:
    httplib::Client client_;
    std::mutex mutex_;
    std::string heard_;
    std::atomic<bool> gone_ = false;
    std::thread thread_;
  };

  std::optional<writing::TraceWriter> writer_;
  std::uint64_t blocks_ = 0;
};

// A page that is opened shows what the file of a recording has by then.
TEST_F(GrowingTest, APageThatIsOpenedHasWhatCame) {
  start(true);
  EXPECT_TRUE(has("api/trace", "\"calls\":1,"));
  EXPECT_TRUE(has("api/trace", "\"growing\":true"));
  EXPECT_TRUE(has("api/progress", "\"grown\":false,\"generation\":1,"));
  EXPECT_EQ(get(path_)->status, 200);
  more();
  EXPECT_TRUE(has("api/progress", "\"grown\":true"));
  EXPECT_TRUE(has("api/trace", "\"calls\":1,"));
  EXPECT_EQ(get(path_ + "index.html")->status, 200);
  EXPECT_TRUE(has("api/trace", "\"calls\":1,"));
  EXPECT_EQ(get(path_)->status, 200);
  EXPECT_TRUE(has("api/trace", "\"calls\":2,"));
  EXPECT_TRUE(has("api/progress", "\"grown\":false"));
  ASSERT_TRUE(writer_->finish().ok());
  EXPECT_TRUE(has("api/progress", "\"grown\":true"));
  EXPECT_EQ(get(path_)->status, 200);
  EXPECT_TRUE(has("api/trace", "\"growing\":false"));
  EXPECT_TRUE(has("api/progress", "\"grown\":false"));
}

TEST_F(GrowingTest, PagesKeepTheirGenerationUntilTheyTakeTheNext) {
  start(true);
  ASSERT_TRUE(has("api/trace", "\"calls\":1,"));
  auto one = std::make_optional<Page>(port_, path_ + "api/alive?page=one");
  auto two = std::make_optional<Page>(port_, path_ + "api/alive?page=two");
  more();
  const std::string renewed = get_data("api/renew?page=one&generation=1&calls=0.0.0,0.0.7,0.3.0,x")->body;
  EXPECT_EQ(renewed,
            "{\"generation\":2,\"same\":\"calls\",\"shift\":0,\"from\":[null],\"calls\":[[0,0,0],null,null,null],"
            "\"threads\":[[0]]}");
  // Both answer while the page turns to the next one.
  EXPECT_TRUE(has("api/trace?generation=1", "\"calls\":1,"));
  EXPECT_TRUE(has("api/trace?generation=2", "\"calls\":2,"));
  EXPECT_EQ(get_data("api/hold?page=one&generation=2")->status, 200);
  EXPECT_TRUE(has("api/trace?generation=1", "\"calls\":1,")) << "page two has it";
  // Page two hears that there is more, though the file has not grown since.
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (two->heard().find("\"grown\":true") == std::string::npos && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(10ms);
  EXPECT_NE(two->heard().find("\"grown\":true"), std::string::npos);
  EXPECT_EQ(two->heard().find("replaced"), std::string::npos);
  two.reset();
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (get_data("api/trace?generation=1")->status == 200 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(get_data("api/trace?generation=1")->status, 410);
  EXPECT_EQ(get_data("api/hold?page=one&generation=1")->status, 410);
  EXPECT_EQ(get_data("api/progress?generation=1")->status, 410);
  for (const char* const wrong : {"-1", "9", "x", "99999999999999999999999", ""})
    EXPECT_EQ(get_data("api/trace?generation=" + std::string(wrong))->status, 410) << wrong;
  // What is asked by somebody who has nothing is not the same as anything.
  EXPECT_TRUE(has("api/renew", "\"generation\":2,\"same\":\"nothing\""));
}

// A page that holds on to what it has, however often it asks, does not make the server keep everything.
TEST_F(GrowingTest, TheOldestGenerationsAreLetGo) {
  start(true);
  ASSERT_TRUE(has("api/trace", "\"calls\":1,"));
  auto one = std::make_optional<Page>(port_, path_ + "api/alive?page=one");
  for (int i = 1; i < 8; ++i) {
    more();
    EXPECT_TRUE(
        has("api/renew?page=one&generation=" + std::to_string(i), "\"generation\":" + std::to_string(i + 1) + ","));
  }
  EXPECT_EQ(get_data("api/trace?generation=3")->status, 410);
  EXPECT_EQ(get_data("api/trace?generation=4")->status, 200);
}

// While a page follows, the newest part is read; calls that are under way have their true begin in it.
TEST_F(GrowingTest, APageThatFollowsHasTheNewestPart) {
  newest_events_ = 4;
  const format::Event outer[] = {format::make_event(2000, false, 5)};
  writer_->add_block(0, 0, blocks_++, 2000, outer);
  writer_->flush();
  start(true);
  ASSERT_TRUE(has("api/trace", "\"calls\":2,"));
  const auto begin_of = [this](const std::string& call) {
    const std::string body = get_data("api/call?thread=0&" + call)->body;
    const std::size_t at = body.find("\"begin\":");
    return at == std::string::npos ? body : body.substr(at, body.find(',', at) - at);
  };
  const std::string begin = begin_of("index=1&generation=1");
  auto one = std::make_optional<Page>(port_, path_ + "api/alive?page=one");
  std::uint64_t generation = 1;
  std::string renewed;
  std::size_t kept_rows = 0;
  while (generation < 12) {
    more();
    const std::string has = std::to_string(generation);
    renewed = get_data("api/renew?page=one&newest=1&generation=" + has + "&calls=0.0.0")->body;
    kept_rows += renewed.find("\"same\":\"calls\"") != std::string::npos ? 1 : 0;
    EXPECT_EQ(renewed.find("\"same\":\"nothing\""), std::string::npos) << renewed;
    EXPECT_EQ(renewed.find("\"same\":\"file\""), std::string::npos) << renewed;
    EXPECT_EQ(get_data("api/hold?page=one&generation=" + std::to_string(++generation))->status, 200);
  }
  // It begins anew now and then, not each time.
  EXPECT_GT(kept_rows, 4U);
  EXPECT_LT(kept_rows, 11U);
  EXPECT_EQ(renewed.find("\"from\":[null]"), std::string::npos) << renewed;
  const std::string facts = get_data("api/trace?generation=12")->body;
  const std::size_t at = facts.find("\"calls\":") + 8;
  const int calls = std::stoi(facts.substr(at));
  EXPECT_GE(calls, 3);
  EXPECT_LE(calls, 5);
  EXPECT_EQ(begin_of("index=0&generation=12"), begin);
  // All of it, when the page stops: the call is where it was.
  const std::string whole = get_data("api/renew?page=one&generation=12&calls=0.0.0")->body;
  EXPECT_NE(whole.find("\"from\":[null]"), std::string::npos) << whole;
  EXPECT_NE(whole.find("\"calls\":[[0,0,1]]"), std::string::npos) << whole;
  EXPECT_TRUE(has("api/trace?generation=13", "\"calls\":13,"));
}

TEST_F(GrowingTest, AReplacedFileIsAnotherOneAndADamagedOneIsTold) {
  start(true);
  ASSERT_TRUE(has("api/trace", "\"calls\":1,"));
  auto one = std::make_optional<Page>(port_, path_ + "api/alive?page=one");
  std::filesystem::rename(file_, directory_ / "old.karst");
  std::ofstream(file_) << "no trace, but some text that is as long as a header may be, and then some";
  const auto refused = get_data("api/renew?page=one&generation=1");
  EXPECT_EQ(refused->status, 500);
  EXPECT_NE(refused->body.find("app.karst"), std::string::npos);
  EXPECT_TRUE(has("api/trace?generation=1", "\"calls\":1,"));
  EXPECT_TRUE(has("api/trace", "\"calls\":1,"));
  std::filesystem::remove(file_);
  test::SampleTrace sample;
  test::fill_random(sample, {});
  auto writer = writing::TraceWriter::create(file_);
  ASSERT_TRUE(writer.ok());
  sample.write(*writer);
  const auto other = get_data("api/renew?page=one&generation=1&calls=0.0.0");
  EXPECT_NE(other->body.find("\"same\":\"nothing\""), std::string::npos) << other->body;
  EXPECT_NE(other->body.find("\"calls\":[null]"), std::string::npos) << other->body;
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
