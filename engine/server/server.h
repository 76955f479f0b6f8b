// SPDX-License-Identifier: MIT
// The local web server of docs/viewer-protocol.md.
//
// Who may ask: a page that knows the token, on this machine, of the same user. The server listens on 127.0.0.1 alone
// and closes connections of other users; every address begins with the token, 128 random bits; and as other pages in
// the same browser can send requests here too, the headers that a browser sets and pages cannot forge (Host, Origin,
// Sec-Fetch-Site) must say that the request is from our own page.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/server/http_server.h"
#include "engine/server/source.h"

namespace karst::engine {

struct ServerOptions {
  bool keep = false;                         ///< go on when the last page closed
  std::chrono::milliseconds patience{5000};  ///< how long after that; a reload is quicker
  std::vector<uid_t> users = {};             ///< who may connect beside root; empty: who runs it, and who ran sudo
  HttpServer::Limits limits = {};
};

class Server {
 public:
  /// Listens. Error: no port can be had, or no random numbers.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, std::unique_ptr<Source> source);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  /// http://127.0.0.1:PORT/TOKEN/
  std::string url() const;
  /// Serves until the last page closed (unless `keep`) or stop(). Call once.
  void run();
  /// Makes run() return; from any thread, also before it was called.
  void stop();
  /// Why nothing can be shown, or empty.
  std::string failure() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::engine
