// SPDX-License-Identifier: MIT
#include "engine/server/local_source.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/cut/cut.h"
#include "engine/server/generations.h"
#include "engine/server/jobs.h"
#include "engine/server/renewal.h"

namespace karst::engine {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(250);
constexpr int kLongestWait = 80;  // ticks that `api/progress?wait=1` takes to answer

std::string_view value_of(const Parameters& parameters, std::string_view name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<std::uint64_t> number_of(const Parameters& parameters) {
  const std::string_view text = value_of(parameters, "generation");
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

SourceReply whole(std::string json) {
  SourceReply reply;
  reply.body = std::move(json);
  return reply;
}

class LocalSource : public Source {
 public:
  explicit LocalSource(LocalOptions options)
      : options_(std::move(options)), generations_([this](const auto& before, bool newest) {
          const bool part = newest && before != nullptr && before->api() != nullptr;
          return part ? std::make_shared<Loader>(before, options_.newest_events) : load();
        }) {}

  SourceReply answer(std::string_view path, const Parameters& parameters) override {
    if (path == "alive") return keep_alive(std::string(value_of(parameters, "page")));
    if (path == "progress") return progress(parameters);
    if (path == "first") {
      if (const Generation from = asked(parameters); from.loader != nullptr)
        from.loader->read_first(value_of(parameters, "threads"));
      return whole("{}");
    }
    if (path == "renew") return renew(parameters);
    if (path == "hold") return hold(parameters);
    if (path == "stop") {
      jobs_.stop(value_of(parameters, "job"));
      return whole("{}");
    }
    for (const char* const what : {"query", "check", "schema"})
      if (path == what) return ask(what, parameters);
    return data(path, parameters);
  }

  void page_is_opened() override {
    try {
      generations_.open();
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

  std::string failure() const override { return generations_.newest().loader->error(); }

 private:
  std::shared_ptr<Loader> load() const {
    Api::Server about;
    about.keep = options_.keep;
    about.cut = cut_trace;
    about.query = !options_.asked.empty();
    return std::make_shared<Loader>(options_.files, options_.version, about, IndexCache::of_user(), options_.preview);
  }

  /// What the question is about: the newest, unless it names one. An answer that nobody can give has no loader.
  Generation asked(const Parameters& parameters) const {
    if (!parameters.contains("generation")) return generations_.newest();
    return generations_.find(number_of(parameters).value_or(0));
  }

  bool is_stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  // In slices, so that a server that ends need not wait.
  SourceReply progress(const Parameters& parameters) {
    const Generation now = asked(parameters);
    if (now.loader == nullptr) return gone();
    for (int i = 0; parameters.contains("wait") && i < kLongestWait && !is_stopping(); ++i)
      if (now.loader->wait_for(kLookEvery, value_of(parameters, "wait") == "picture")) break;
    return whole(now.loader->progress_json(now.number, now.loader->is_behind()));
  }

  // For a page that has a generation and wants what came since.
  SourceReply renew(const Parameters& parameters) {
    for (int i = 0; i < kLongestWait && !is_stopping(); ++i) {
      Generations::Step step;
      try {
        step = generations_.renew(number_of(parameters).value_or(0), value_of(parameters, "newest") == "1");
      } catch (const std::system_error&) {
        return error_reply(507, "the system gives no thread to read the trace again");
      }
      if (step.state == Generations::State::kReady) return renewed(parameters, step.generation);
      if (step.state == Generations::State::kPausing) {
        std::unique_lock lock(mutex_);
        stopping_changed_.wait_for(lock, kLookEvery / 4, [this] { return stopping_; });
        continue;
      }
      const bool finished = step.generation.loader->wait_for(kLookEvery);
      const std::string why = step.generation.loader->error();
      if (finished && !why.empty()) return error_reply(500, why);
    }
    return not_ready(generations_.newest());
  }

  SourceReply renewed(const Parameters& parameters, const Generation& now) {
    generations_.hold(value_of(parameters, "page"), now.number, false);
    const Generation before = generations_.find(number_of(parameters).value_or(0));
    return whole(renewal_json(before, now, options_.files.size(), value_of(parameters, "calls")));
  }

  SourceReply hold(const Parameters& parameters) {
    if (!generations_.hold(value_of(parameters, "page"), number_of(parameters).value_or(0), true)) return gone();
    return whole("{}");
  }

  Reply data(std::string_view path, const Parameters& parameters) {
    Jobs::Running job(jobs_, value_of(parameters, "job"));
    const Generation from = asked(parameters);
    if (from.loader == nullptr) return gone();
    Api* api = from.loader->api();
    if (api == nullptr) {
      try {
        if (auto reply = from.loader->preview(path, parameters, job.work())) return std::move(*reply);
      } catch (const std::bad_alloc&) {
        // Whoever reads the trace meets this, too, and says so.
      }
      api = from.loader->api();  // it goes when all is there, not before
    }
    if (api == nullptr) return not_ready(from);
    return api->answer(path, parameters, job.work());
  }

  static Reply gone() {
    return error_reply(410, "the trace was read again, and what this page shows of it was let go: ask api/renew");
  }

  static Reply not_ready(const Generation& from) {
    const std::string why = from.loader->error();
    Json json;
    json.open('{').field("error", why.empty() ? "the trace is being opened" : why);
    json.key("progress").raw(from.loader->progress_json(from.number, false)).close('}');
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
    const Generation from = asked(parameters);
    if (from.loader == nullptr) return gone();
    if (from.loader->api() == nullptr) return not_ready(from);
    const std::string_view number = value_of(parameters, "trace");
    const std::size_t trace = number == "1" ? 1 : 0;
    if (trace >= options_.files.size() || (number != "" && number != "0" && number != "1"))
      return error_reply(400, "there is no trace " + std::string(number));
    if (!from.loader->is_there(trace))
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
    generations_.begin_page(name);
    // Goes with the last copy of the stream, whatever ended it.
    const std::shared_ptr<void> page(nullptr, [this, name](void*) {
      jobs_.stop_all_of(name);
      generations_.end_page(name);
    });
    SourceReply reply;
    reply.type = "text/event-stream";
    reply.stream = [this, page, name = std::move(name), last = std::string(),
                    last_jobs = std::string("{}")](std::string& events) mutable {
      // Not before the first: a page is to hear at once.
      if (!last.empty()) {
        std::unique_lock lock(mutex_);
        stopping_changed_.wait_for(lock, kLookEvery, [this] { return stopping_; });
      }
      if (is_stopping()) return false;
      const Generation newest = generations_.newest();
      const std::string now = newest.loader->progress_json(newest.number, generations_.is_behind(name));
      // A comment keeps asking the connection whether somebody is there.
      events = now == last ? std::string(":\n\n") : "event: progress\ndata: " + now + "\n\n";
      last = now;
      const std::string at_work = jobs_.progress_json();
      if (at_work != last_jobs) events += "event: jobs\ndata: " + at_work + "\n\n";
      last_jobs = at_work;
      return true;
    };
    return reply;
  }

  const LocalOptions options_;
  Jobs jobs_;
  Generations generations_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable stopping_changed_;
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
