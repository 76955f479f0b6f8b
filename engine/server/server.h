// SPDX-License-Identifier: MIT
// The local web server of docs/viewer-protocol.md.
//
// Who may ask: a page that knows the token, on this machine, of the same user. The server listens on 127.0.0.1 alone
// and closes connections of other users; every address begins with the token, 128 random bits; and as other pages in
// the same browser can send requests here too, the headers that a browser sets and pages cannot forge (Host, Origin,
// Sec-Fetch-Site) must say that the request is from our own page.
#pragma once
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/index/preview.h"
#include "engine/server/asked_program.h"
#include "engine/server/http_server.h"

namespace karst::engine {

struct ServerOptions {
  std::vector<std::filesystem::path> files;  ///< one or two traces
  std::string version;
  bool keep = false;                         ///< go on when the last page closed
  std::chrono::milliseconds patience{5000};  ///< how long after that; a reload is quicker
  Preview::Limits preview = {};
  std::vector<uid_t> users = {};  ///< who may connect beside root; empty: who runs it, and who ran sudo
  HttpServer::Limits limits = {};
  /// The program that answers what is asked in SQL (cli/commands/asked.cc); empty: nothing does.
  std::filesystem::path asked = {};
  AskedLimits asked_limits = {};
};

class Server {
 public:
  /// Listens and begins to index. Error: no port can be had, or no random numbers.
  static Result<std::unique_ptr<Server>> start(ServerOptions options);
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
  /// What indexing failed with, or empty.
  std::string failure() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::engine
