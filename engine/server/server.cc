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
#include "engine/server/http_server.h"
#include "engine/server/page.h"

namespace karst::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookEvery = std::chrono::milliseconds(250);

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

HttpReply to_http(SourceReply answer) {
  HttpReply reply;
  reply.status = answer.status;
  reply.type = std::move(answer.type);
  reply.body = std::move(answer.body);
  reply.stream = std::move(answer.stream);
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
  std::unique_ptr<Source> source;
  std::unique_ptr<HttpServer> http;

  std::mutex mutex;  // of what follows
  std::condition_variable stopping_changed;
  bool stopping = false;
  std::size_t pages = 0;
  bool had_page = false;
  Clock::time_point last_page_left;

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
    constexpr std::string_view kApi = "api/";
    if (path.starts_with(kApi)) {
      SourceReply answer = source->answer(path.substr(kApi.size()), request.parameters);
      if (path == "api/alive" && answer.stream) count_page(answer);
      return to_http(std::move(answer));
    }
    if (path.empty()) source->page_is_opened();
    return page(path.empty() ? "index.html" : path);
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

  /// The stream lives as long as its page does.
  void count_page(SourceReply& answer) {
    {
      const std::lock_guard lock(mutex);
      ++pages;
      had_page = true;
    }
    // Goes with the last copy of the stream, whatever ended it.
    const std::shared_ptr<void> page(nullptr, [this](void*) {
      const std::lock_guard lock(mutex);
      --pages;
      last_page_left = Clock::now();
    });
    answer.stream = [page, of_source = std::move(answer.stream)](std::string& events) { return of_source(events); };
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
    source->stop();
    http->stop();
  }
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { stop(); }

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, std::unique_ptr<Source> source) {
  auto impl = std::make_unique<Impl>();
  auto token = random_token();
  if (!token) return token.error();
  impl->token = std::move(*token);
  impl->source = std::move(source);
  Impl* const self = impl.get();
  HttpServer::Limits limits = options.limits;
  limits.users = users_of(options);
  auto http =
      HttpServer::listen(std::move(limits), [self](const HttpRequest& request) { return self->answer(request); });
  if (!http) return http.error();
  impl->http = std::move(*http);
  impl->port = impl->http->port();
  impl->options = std::move(options);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

int Server::port() const { return impl_->port; }
std::string Server::url() const { return "http://127.0.0.1:" + std::to_string(impl_->port) + "/" + impl_->token + "/"; }
std::string Server::failure() const { return impl_->failed.empty() ? impl_->source->failure() : impl_->failed; }

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
