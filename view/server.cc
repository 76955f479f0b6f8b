#include "view/server.h"

#include <httplib.h>
#include <sys/random.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>

#include "view/jobs.h"
#include "view/loader.h"
#include "view/page.h"

namespace karst::view {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kWorkers = 24;  // a browser keeps six connections a page open, and each holds a thread
constexpr auto kTick = std::chrono::milliseconds(250);
constexpr int kLongestWait = 80;  // ticks that `api/progress?wait=1` takes to answer

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; worker-src 'self' blob:; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr std::string_view kNoPage =
    "<!doctype html><meta charset=utf-8><title>karst view</title><p>This karst was built without Node.js, so its page "
    "is "
    "missing. Run <code>script/setup</code> and build again. The data is served: see <code>api/trace</code>.";

Result<std::string> random_token() {
  std::array<unsigned char, 16> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return Error{"the kernel gave no random numbers for the viewer's address"};
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
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

}  // namespace

struct Server::Impl {
  ServerOptions options;
  std::string token;
  int port = 0;
  httplib::Server http;
  std::unique_ptr<Loader> loader;
  Jobs jobs;

  std::mutex mutex;  // of what follows
  std::condition_variable stopping_changed;
  bool stopping = false;
  std::size_t pages = 0;
  bool had_page = false;
  Clock::time_point last_page_left;

  bool is_stopping() {
    const std::lock_guard lock(mutex);
    return stopping;
  }

  // Why the request is refused; null: it is not.
  const char* refusal(const httplib::Request& request) const {
    const std::string own[] = {"127.0.0.1:" + std::to_string(port), "localhost:" + std::to_string(port)};
    const auto header = [&](const char* name) { return request.get_header_value(name); };
    if (request.get_header_value_count("Host") != 1 || (header("Host") != own[0] && header("Host") != own[1])) {
      return "this server answers to 127.0.0.1 and localhost alone";
    }
    if (request.has_header("Origin") && header("Origin") != "http://" + own[0] &&
        header("Origin") != "http://" + own[1]) {
      return "other pages may not ask here";
    }
    if (request.has_header("Sec-Fetch-Site") && header("Sec-Fetch-Site") != "same-origin" &&
        header("Sec-Fetch-Site") != "none") {
      return "other pages may not ask here";
    }
    if (request.method != "GET" && request.method != "HEAD") return "only GET is understood";
    const std::string_view path = request.path;
    if (!path.starts_with('/') || !same_text(path.substr(1, token.size()), token) ||
        path.substr(1 + token.size(), 1) != "/") {
      return "the address is not that of this viewer: use the one that karst view printed";
    }
    return nullptr;
  }

  void answer(const httplib::Request& request, httplib::Response& response) {
    response.set_header("Content-Security-Policy", kPolicy);
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Opener-Policy", "same-origin");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("Cache-Control", "no-store");
    if (const char* why = refusal(request); why != nullptr) {
      response.set_header("Connection", "close");
      send(response, error_reply(403, why));
      return;
    }
    const std::string_view path = std::string_view(request.path).substr(token.size() + 2);
    if (path == "api/alive") {
      keep_alive(response);
    } else if (path == "api/progress") {
      // In slices, so that a server that ends need not wait.
      for (int i = 0; request.has_param("wait") && i < kLongestWait && !is_stopping(); ++i) {
        if (loader->wait_for(kTick, request.get_param_value("wait") == "picture")) break;
      }
      Reply reply;
      reply.body = loader->progress_json();
      send(response, std::move(reply));
    } else if (path == "api/first") {
      loader->read_first(request.get_param_value("threads"));
      Reply reply;
      reply.body = "{}";
      send(response, std::move(reply));
    } else if (path == "api/stop") {
      jobs.stop(request.get_param_value("job"));
      Reply reply;
      reply.body = "{}";
      send(response, std::move(reply));
    } else if (path.starts_with("api/")) {
      send(response, data(path.substr(4), request));
    } else {
      send(response, page(path.empty() ? "index.html" : path));
    }
  }

  Reply data(std::string_view path, const httplib::Request& request) {
    Parameters parameters;
    for (const auto& [name, value] : request.params) parameters.emplace(name, value);
    Jobs::Running job(jobs, request.get_param_value("job"));
    Api* api = loader->api();
    if (api == nullptr) {
      try {
        if (auto reply = loader->preview(path, parameters, job.work())) return std::move(*reply);
      } catch (const std::bad_alloc&) {
        // Whoever reads the trace meets this, too, and says so.
      }
      api = loader->api();  // it goes when all is there, not before
    }
    if (api == nullptr) {
      const std::string why = loader->error();
      Json json;
      json.open('{').field("error", why.empty() ? "the trace is being opened" : why);
      json.key("progress").raw(loader->progress_json()).close('}');
      Reply reply;
      reply.status = 503;
      reply.body = json.take();
      return reply;
    }
    // Numbers of functions are others now than those that such a page has.
    if (request.has_param("reading")) return error_reply(409, "the trace is read by now: ask api/trace again");
    return api->answer(path, parameters, job.work());
  }

  static Reply page(std::string_view path) {
    Reply reply;
    if (const PageFile* file = find_page_file(path); file != nullptr) {
      reply.type = media_type(path);
      reply.body = file->bytes;
    } else if (path == "index.html") {
      reply.type = "text/html; charset=utf-8";
      reply.body = kNoPage;
    } else {
      reply = error_reply(404, "there is no such file");
    }
    return reply;
  }

  // By a content provider: a plain body would be compressed, which on loopback takes longer than sending.
  static void send(httplib::Response& response, Reply reply) {
    response.status = reply.status;
    if (!reply.file_name.empty()) {
      std::string name;
      for (const char c : reply.file_name) name += c < ' ' || c == '"' || c == '\\' || c == 127 ? '_' : c;
      response.set_header("Content-Disposition", "attachment; filename=\"" + name + "\"");
    }
    const auto body = std::make_shared<const std::string>(std::move(reply.body));
    if (body->empty()) {
      response.set_content("", reply.type.c_str());
      return;
    }
    response.set_content_provider(body->size(), reply.type.c_str(),
                                  [body](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                    return sink.write(body->data() + offset, length);
                                  });
  }

  // An event stream: lives as long as the page does.
  void keep_alive(httplib::Response& response) {
    {
      const std::lock_guard lock(mutex);
      ++pages;
      had_page = true;
    }
    // Goes with the last copy of the provider, whatever ended it.
    const std::shared_ptr<void> page(nullptr, [this](void*) {
      const std::lock_guard lock(mutex);
      --pages;
      last_page_left = Clock::now();
    });
    const auto last = std::make_shared<std::string>();
    const auto last_jobs = std::make_shared<std::string>("{}");
    response.set_chunked_content_provider(
        "text/event-stream", [this, last, last_jobs, page](std::size_t, httplib::DataSink& sink) {
          if (is_stopping()) {
            sink.done();
            return true;
          }
          const std::string now = loader->progress_json();
          // A comment keeps asking the connection whether somebody is there.
          std::string event = now == *last ? std::string(":\n\n") : "event: progress\ndata: " + now + "\n\n";
          *last = now;
          const std::string at_work = jobs.progress_json();
          if (at_work != *last_jobs) event += "event: jobs\ndata: " + at_work + "\n\n";
          *last_jobs = at_work;
          if (!sink.write(event.data(), event.size())) return false;
          std::unique_lock lock(mutex);
          stopping_changed.wait_for(lock, kTick, [this] { return stopping; });
          return true;
        });
  }

  // Ends the server when its last page is gone for good.
  void watch() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      stopping_changed.wait_for(lock, kTick);
      if (!options.keep && had_page && pages == 0 && Clock::now() - last_page_left > options.patience) {
        stopping = true;
        stopping_changed.notify_all();
      }
    }
    lock.unlock();
    jobs.stop_all();
    http.stop();
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
  httplib::Server& http = impl->http;
  http.new_task_queue = [] { return new httplib::ThreadPool(kWorkers); };
  http.set_tcp_nodelay(true);
  http.set_keep_alive_max_count(1'000'000);
  http.set_keep_alive_timeout(2);  // seconds; as long may stopping take
  http.set_payload_max_length(0);
  http.set_pre_routing_handler([self](const httplib::Request& request, httplib::Response& response) {
    self->answer(request, response);
    return httplib::Server::HandlerResponse::Handled;
  });
  impl->port = http.bind_to_any_port("127.0.0.1");
  if (impl->port <= 0) return Error{"no port on 127.0.0.1 could be had for the viewer"};
  Api::Server about;
  about.keep = options.keep;
  impl->loader =
      std::make_unique<Loader>(options.files, options.version, about, IndexCache::of_user(), options.preview);
  impl->options = std::move(options);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

int Server::port() const { return impl_->port; }
std::string Server::url() const { return "http://127.0.0.1:" + std::to_string(impl_->port) + "/" + impl_->token + "/"; }
std::string Server::failure() const { return impl_->loader->error(); }

void Server::run() {
  std::atomic<bool> over = false;
  std::thread watcher([this, &over] {
    // Before it listens, stopping it would do nothing.
    while (!impl_->http.is_running() && !over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    impl_->watch();
  });
  impl_->http.listen_after_bind();
  over = true;
  stop();
  watcher.join();
}

void Server::stop() {
  const std::lock_guard lock(impl_->mutex);
  impl_->stopping = true;
  impl_->stopping_changed.notify_all();
}

}  // namespace karst::view
