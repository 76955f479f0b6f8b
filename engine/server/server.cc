// SPDX-License-Identifier: MIT
#include "engine/server/server.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "engine/cut/cut.h"
#include "engine/server/http_server.h"
#include "engine/server/jobs.h"
#include "engine/server/loader.h"
#include "engine/server/page.h"

namespace karst::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookEvery = std::chrono::milliseconds(250);
constexpr int kLongestWait = 80;  // ticks that `api/progress?wait=1` takes to answer

// Of every answer.
constexpr std::string_view kHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; worker-src 'self' blob:; style-src 'self'; "
    "img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

constexpr std::string_view kNoPage =
    "<!doctype html><meta charset=utf-8><title>karst view</title><p>This karst was built without Node.js, so its page "
    "is "
    "missing. Run <code>script/setup</code> and build again. The data is served: see <code>api/trace</code>.";

constexpr std::string_view kNoThread = "no thread could be had for the viewer's server: the system allows no more";

Result<std::string> random_token() {
  std::array<char, 16> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Error{"the kernel gave no random numbers for the viewer's address"};
  }
  return hex({bytes.data(), bytes.size()});
}

// Takes the same time wherever the two differ.
bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference =
        static_cast<unsigned char>(difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  }
  return difference == 0;
}

// Who may connect. Under sudo that is who ran it, too: a browser seldom runs as root.
std::vector<uid_t> users_of(const ServerOptions& options) {
  if (!options.users.empty()) return options.users;
  std::vector<uid_t> users = {::geteuid()};
  const char* const caller = users[0] == 0 ? std::getenv("SUDO_UID") : nullptr;
  uid_t user = 0;
  if (caller != nullptr && std::from_chars(caller, caller + std::strlen(caller), user).ec == std::errc()) {
    users.push_back(user);
  }
  return users;
}

HttpReply json_reply(std::string body) {
  HttpReply reply;
  reply.body = std::move(body);
  return reply;
}

HttpReply to_http(Reply answer) {
  HttpReply reply;
  reply.status = answer.status;
  reply.type = std::move(answer.type);
  reply.body = std::move(answer.body);
  if (!answer.file_name.empty()) {
    reply.headers = "Content-Disposition: attachment; filename=\"";
    for (const char c : answer.file_name) reply.headers += c < ' ' || c == '"' || c == '\\' || c == 127 ? '_' : c;
    reply.headers += "\"\r\n";
  }
  return reply;
}

}  // namespace

struct Server::Impl {
  ServerOptions options;
  std::string token;
  int port = 0;
  std::string failed;  // to run at all
  std::function<std::shared_ptr<Loader>()> load;
  std::shared_ptr<Loader> loader;  // behind `mutex`; see current()
  Jobs jobs;
  std::unique_ptr<HttpServer> http;

  std::mutex mutex;  // of what follows
  std::condition_variable stopping_changed;
  bool stopping = false;
  std::size_t pages = 0;
  bool had_page = false;
  Clock::time_point last_page_left;
  bool is_asked = false;  // by SQL

  bool is_stopping() {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  std::shared_ptr<Loader> current() {
    const std::lock_guard lock(mutex);
    return loader;
  }

  /// For a page that is opened now: with what a file that grows has by now.
  void load_what_came() {
    const std::shared_ptr<Loader> before = current();
    if (!before->finished() || !before->is_behind()) return;
    try {
      std::shared_ptr<Loader> fresh = load();
      const std::lock_guard lock(mutex);
      loader = std::move(fresh);
    } catch (const std::system_error&) {  // then what is there is shown
    }
  }

  // Why the request is refused; null: it is not.
  const char* refusal(const HttpRequest& request) const {
    const std::string own[] = {"127.0.0.1:" + std::to_string(port), "localhost:" + std::to_string(port)};
    const auto is_own = [&](std::string_view host) { return host == own[0] || host == own[1]; };
    if (request.count("host") != 1 || !is_own(request.header("host"))) {
      return "this server answers to 127.0.0.1 and localhost alone";
    }
    for (const auto& [name, value] : request.headers) {
      constexpr std::string_view kScheme = "http://";
      if ((name == "origin" && (!value.starts_with(kScheme) || !is_own(value.substr(kScheme.size())))) ||
          (name == "sec-fetch-site" && value != "same-origin" && value != "none")) {
        return "other pages may not ask here";
      }
    }
    const std::string_view path = request.path;
    if (!path.starts_with('/') || !same_text(path.substr(1, token.size()), token) ||
        path.substr(1 + token.size(), 1) != "/") {
      return "the address is not that of this viewer: use the one that karst view printed";
    }
    return nullptr;
  }

  HttpReply answer(const HttpRequest& request) {
    HttpReply reply;
    if (const char* why = refusal(request); why != nullptr) {
      reply = to_http(error_reply(403, why));
      reply.last = true;
    } else {
      reply = answer_own(request);
    }
    reply.headers += kHeaders;
    return reply;
  }

  HttpReply answer_own(const HttpRequest& request) {
    const std::string_view path = std::string_view(request.path).substr(token.size() + 2);
    if (path == "api/alive") return keep_alive(std::string(request.parameter("page")));
    if (path == "api/progress") {
      // In slices, so that a server that ends need not wait.
      const std::shared_ptr<Loader> now = current();
      for (int i = 0; request.has("wait") && i < kLongestWait && !is_stopping(); ++i) {
        if (now->wait_for(kLookEvery, request.parameter("wait") == "picture")) break;
      }
      return json_reply(now->progress_json());
    }
    if (path == "api/first") {
      current()->read_first(request.parameter("threads"));
      return json_reply("{}");
    }
    if (path == "api/stop") {
      jobs.stop(request.parameter("job"));
      return json_reply("{}");
    }
    for (const char* const what : {"query", "check", "schema"})
      if (path.substr(0, 4) == "api/" && path.substr(4) == what) return to_http(ask(what, request));
    if (path.starts_with("api/")) return to_http(data(path.substr(4), request));
    if (path.empty()) load_what_came();
    return page(path.empty() ? "index.html" : path);
  }

  Reply data(std::string_view path, const HttpRequest& request) {
    const Parameters& parameters = request.parameters;
    Jobs::Running job(jobs, request.parameter("job"));
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
    const std::lock_guard lock(mutex);
    return !std::exchange(is_asked, true);
  }

  // What SQL answers, by a process of its own.
  Reply ask(const std::string& what, const HttpRequest& request) {
    if (options.asked.empty()) return error_reply(404, "this server answers no SQL");
    const std::shared_ptr<Loader> from = current();
    if (from->api() == nullptr) return not_ready(*from);
    const std::string_view number = request.parameter("trace");
    const std::size_t trace = number == "1" ? 1 : 0;
    if (trace >= options.files.size() || (number != "" && number != "0" && number != "1"))
      return error_reply(400, "there is no trace " + std::string(number));
    if (!from->is_there(trace))
      return error_reply(409, "the trace's file was replaced or removed since the page read it: open the page again");
    Jobs::Running job(jobs, request.parameter("job"));
    const bool is_heavy = what != "schema";
    if (is_heavy && !begin_to_ask()) return error_reply(429, "another query is at work: wait for it, or stop it");
    const std::shared_ptr<void> end(nullptr, [this, is_heavy](void*) {
      const std::lock_guard lock(mutex);
      if (is_heavy) is_asked = false;
    });
    std::error_code none;
    std::vector<std::string> words = {options.asked.string(), "asked", what,
                                      std::filesystem::absolute(options.files[trace], none).string(),
                                      "--parent=" + std::to_string(::getpid())};
    if (request.parameter("raw") == "1") words.emplace_back("--raw");
    auto answer = answer_of_program(words, request.parameter("sql"), job.work(), options.asked_limits);
    if (is_stopped(job.work())) return error_reply(499, "this was stopped");
    if (!answer) return error_reply(500, answer.error().message);
    Reply reply;
    reply.status = answer->starts_with("{\"error\":") ? 400 : 200;
    reply.body = std::move(*answer);
    return reply;
  }

  static HttpReply page(std::string_view path) {
    HttpReply reply;
    if (const PageFile* file = find_page_file(path); file != nullptr) {
      reply.type = media_type(path);
      reply.fixed = file->bytes;
    } else if (path == "index.html") {
      reply.type = "text/html; charset=utf-8";
      reply.fixed = kNoPage;
    } else {
      reply = to_http(error_reply(404, "there is no such file"));
    }
    return reply;
  }

  // An event stream: lives as long as the page does. What the page asked for ends with it.
  HttpReply keep_alive(std::string name) {
    {
      const std::lock_guard lock(mutex);
      ++pages;
      had_page = true;
    }
    // Goes with the last copy of the stream, whatever ended it.
    const std::shared_ptr<void> page(nullptr, [this, name = std::move(name)](void*) {
      jobs.stop_all_of(name);
      const std::lock_guard lock(mutex);
      --pages;
      last_page_left = Clock::now();
    });
    HttpReply reply;
    reply.type = "text/event-stream";
    // A page that is there when another one is opened with more keeps what it has: its places are of that.
    reply.stream = [this, page, from = current(), last = std::string(),
                    last_jobs = std::string("{}")](std::string& events) mutable {
      // Not before the first: a page is to hear at once.
      if (!last.empty()) {
        std::unique_lock lock(mutex);
        stopping_changed.wait_for(lock, kLookEvery, [this] { return stopping; });
      }
      if (is_stopping()) return false;
      const std::string now = from->progress_json();
      // A comment keeps asking the connection whether somebody is there.
      events = now == last ? std::string(":\n\n") : "event: progress\ndata: " + now + "\n\n";
      last = now;
      if (from != current()) events += "event: replaced\ndata: {}\n\n";
      const std::string at_work = jobs.progress_json();
      if (at_work != last_jobs) events += "event: jobs\ndata: " + at_work + "\n\n";
      last_jobs = at_work;
      return true;
    };
    return reply;
  }

  // Ends the server when its last page is gone for good.
  void watch() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      stopping_changed.wait_for(lock, kLookEvery);
      if (!options.keep && had_page && pages == 0 && Clock::now() - last_page_left > options.patience) {
        stopping = true;
        stopping_changed.notify_all();
      }
    }
    lock.unlock();
    jobs.stop_all();
    http->stop();
  }
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { stop(); }

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
  auto impl = std::make_unique<Impl>();
  auto token = random_token();
  if (!token) return token.error();
  impl->token = std::move(*token);
  Impl* const self = impl.get();
  HttpServer::Limits limits = options.limits;
  limits.users = users_of(options);
  auto http =
      HttpServer::listen(std::move(limits), [self](const HttpRequest& request) { return self->answer(request); });
  if (!http) return http.error();
  impl->http = std::move(*http);
  impl->port = impl->http->port();
  Api::Server about;
  about.keep = options.keep;
  about.cut = cut_trace;
  about.query = !options.asked.empty();
  try {
    impl->load = [files = options.files, version = options.version, about, preview = options.preview] {
      return std::make_shared<Loader>(files, version, about, IndexCache::of_user(), preview);
    };
    impl->loader = impl->load();
  } catch (const std::system_error&) {
    return Error{std::string(kNoThread)};
  }
  impl->options = std::move(options);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

int Server::port() const { return impl_->port; }
std::string Server::url() const { return "http://127.0.0.1:" + std::to_string(impl_->port) + "/" + impl_->token + "/"; }
std::string Server::failure() const { return impl_->failed.empty() ? impl_->current()->error() : impl_->failed; }

void Server::run() {
  try {
    const std::jthread watcher([this] { impl_->watch(); });
    const auto status = impl_->http->run();
    if (!status) impl_->failed = status.error().message;
    stop();
  } catch (const std::system_error&) {
    impl_->failed = kNoThread;
  }
}

void Server::stop() {
  const std::lock_guard lock(impl_->mutex);
  impl_->stopping = true;
  impl_->stopping_changed.notify_all();
}

}  // namespace karst::engine
