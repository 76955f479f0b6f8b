// SPDX-License-Identifier: MIT
#include "engine/server/local_source.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/cut/cut.h"
#include "engine/server/jobs.h"
#include "engine/server/loader.h"

namespace karst::engine {
namespace {

constexpr auto kTick = std::chrono::milliseconds(250);
constexpr int kLongestWait = 80;  // ticks that `api/progress?wait=1` takes to answer

std::string_view value_of(const Parameters& parameters, std::string_view name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? std::string_view() : std::string_view(found->second);
}

SourceReply whole(std::string json) {
  SourceReply reply;
  reply.body = std::move(json);
  return reply;
}

class LocalSource : public Source {
 public:
  explicit LocalSource(LocalOptions options) : options_(std::move(options)), loader_(load()) {}

  SourceReply answer(std::string_view path, const Parameters& parameters) override {
    if (path == "alive") return keep_alive(std::string(value_of(parameters, "page")));
    if (path == "progress") return progress(parameters);
    if (path == "first") {
      current()->read_first(value_of(parameters, "threads"));
      return whole("{}");
    }
    if (path == "stop") {
      jobs_.stop(value_of(parameters, "job"));
      return whole("{}");
    }
    for (const char* const what : {"query", "check", "schema"})
      if (path == what) return ask(what, parameters);
    return data(path, parameters);
  }

  /// With what a file that grows has by now.
  void page_is_opened() override {
    const std::shared_ptr<Loader> before = current();
    if (!before->finished() || !before->is_behind()) return;
    try {
      std::shared_ptr<Loader> fresh = load();
      const std::lock_guard lock(mutex_);
      loader_ = std::move(fresh);
    } catch (const std::system_error&) {  // then what is there is shown
    }
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      stopping_changed_.notify_all();
    }
    jobs_.stop_all();
  }

  std::string failure() const override { return current()->error(); }

 private:
  std::shared_ptr<Loader> load() const {
    Api::Server about;
    about.keep = options_.keep;
    about.cut = cut_trace;
    about.query = !options_.asked.empty();
    return std::make_shared<Loader>(options_.files, options_.version, about, IndexCache::of_user(), options_.preview);
  }

  std::shared_ptr<Loader> current() const {
    const std::lock_guard lock(mutex_);
    return loader_;
  }

  bool is_stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  // In slices, so that a server that ends need not wait.
  SourceReply progress(const Parameters& parameters) {
    const std::shared_ptr<Loader> now = current();
    for (int i = 0; parameters.contains("wait") && i < kLongestWait && !is_stopping(); ++i)
      if (now->wait_for(kTick, value_of(parameters, "wait") == "picture")) break;
    return whole(now->progress_json());
  }

  Reply data(std::string_view path, const Parameters& parameters) {
    Jobs::Running job(jobs_, value_of(parameters, "job"));
    const std::shared_ptr<Loader> from = current();
    Api* api = from->api();
    if (api == nullptr) {
      try {
        if (auto reply = from->preview(path, parameters, job.work())) return std::move(*reply);
      } catch (const std::bad_alloc&) {
        // Whoever reads the trace meets this, too, and says so.
      }
      api = from->api();  // it goes when all is there, not before
    }
    if (api == nullptr) return not_ready(*from);
    return api->answer(path, parameters, job.work());
  }

  static Reply not_ready(const Loader& from) {
    const std::string why = from.error();
    Json json;
    json.open('{').field("error", why.empty() ? "the trace is being opened" : why);
    json.key("progress").raw(from.progress_json()).close('}');
    Reply reply;
    reply.status = 503;
    reply.body = json.take();
    return reply;
  }

  /// A process that may take half of the machine's memory: there is one at a time. False: another one is at work.
  bool begin_to_ask() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(is_asked_, true);
  }

  // What SQL answers, by a process of its own.
  Reply ask(const std::string& what, const Parameters& parameters) {
    if (options_.asked.empty()) return error_reply(404, "this server answers no SQL");
    const std::shared_ptr<Loader> from = current();
    if (from->api() == nullptr) return not_ready(*from);
    const std::string_view number = value_of(parameters, "trace");
    const std::size_t trace = number == "1" ? 1 : 0;
    if (trace >= options_.files.size() || (number != "" && number != "0" && number != "1"))
      return error_reply(400, "there is no trace " + std::string(number));
    if (!from->is_there(trace))
      return error_reply(409, "the trace's file was replaced or removed since the page read it: open the page again");
    Jobs::Running job(jobs_, value_of(parameters, "job"));
    const bool is_heavy = what != "schema";
    if (is_heavy && !begin_to_ask()) return error_reply(429, "another query is at work: wait for it, or stop it");
    const std::shared_ptr<void> end(nullptr, [this, is_heavy](void*) {
      const std::lock_guard lock(mutex_);
      if (is_heavy) is_asked_ = false;
    });
    std::error_code none;
    std::vector<std::string> words = {options_.asked.string(), "asked", what,
                                      std::filesystem::absolute(options_.files[trace], none).string(),
                                      "--parent=" + std::to_string(::getpid())};
    if (value_of(parameters, "raw") == "1") words.emplace_back("--raw");
    auto answer = answer_of_program(words, value_of(parameters, "sql"), job.work(), options_.asked_limits);
    if (is_stopped(job.work())) return error_reply(499, "this was stopped");
    if (!answer) return error_reply(500, answer.error().message);
    Reply reply;
    reply.status = answer->starts_with("{\"error\":") ? 400 : 200;
    reply.body = std::move(*answer);
    return reply;
  }

  // An event stream: lives as long as the page does. What the page asked for ends with it.
  SourceReply keep_alive(std::string name) {
    // Goes with the last copy of the stream, whatever ended it.
    const std::shared_ptr<void> page(nullptr, [this, name = std::move(name)](void*) { jobs_.stop_all_of(name); });
    SourceReply reply;
    reply.type = "text/event-stream";
    // A page that is there when another one is opened with more keeps what it has: its places are of that.
    reply.stream = [this, page, from = current(), last = std::string(),
                    last_jobs = std::string("{}")](std::string& events) mutable {
      // Not before the first: a page is to hear at once.
      if (!last.empty()) {
        std::unique_lock lock(mutex_);
        stopping_changed_.wait_for(lock, kTick, [this] { return stopping_; });
      }
      if (is_stopping()) return false;
      const std::string now = from->progress_json();
      // A comment keeps asking the connection whether somebody is there.
      events = now == last ? std::string(":\n\n") : "event: progress\ndata: " + now + "\n\n";
      last = now;
      if (from != current()) events += "event: replaced\ndata: {}\n\n";
      const std::string at_work = jobs_.progress_json();
      if (at_work != last_jobs) events += "event: jobs\ndata: " + at_work + "\n\n";
      last_jobs = at_work;
      return true;
    };
    return reply;
  }

  const LocalOptions options_;
  Jobs jobs_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable stopping_changed_;
  std::shared_ptr<Loader> loader_;  // see current()
  bool stopping_ = false;
  bool is_asked_ = false;  // by SQL
};

}  // namespace

Result<std::unique_ptr<Source>> local_source(LocalOptions options) {
  try {
    return std::unique_ptr<Source>(std::make_unique<LocalSource>(std::move(options)));
  } catch (const std::system_error&) {
    return Error{"no thread could be had to read the trace: the system allows no more"};
  }
}

}  // namespace karst::engine
