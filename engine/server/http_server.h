// SPDX-License-Identifier: MIT
// The connections of the viewer's server. One thread accepts them and reads heads, some threads answer.
//
//   accept ─► waiting ── head is whole ──► queued ─► a worker answers ─► waiting again, or closed
//
// A connection costs a thread only while its request is answered, so clients that send slowly, or nothing, hold up
// nobody. Everything is bounded: connections, bytes of a head, the time until it is whole, the time in which nothing of
// an answer is taken. When all places are taken the connection that waits for longest makes room for a new one.
// Connections of other users are closed at once (engine/server/peer.h).
#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/server/http_request.h"
#include "engine/server/peer.h"

namespace karst::engine {

struct HttpReply {
  int status = 200;
  std::string type = "application/json; charset=utf-8";
  std::string headers;  ///< more of them, whole lines
  std::string body;
  std::string_view fixed;  ///< a body that outlives the server, in place of `body`
  /// Not null: the body is what this appends, call by call, until it returns false or the client goes.
  std::function<bool(std::string&)> stream;
  bool last = false;  ///< the connection is closed behind it
};

class HttpServer {
 public:
  struct Limits {
    std::size_t connections = 256;
    std::size_t workers = 24;
    std::size_t streams = 16;                 ///< answers that go on for as long as a page is open
    std::chrono::milliseconds head{10'000};   ///< from the connection's begin until its first head is whole
    std::chrono::milliseconds idle{60'000};   ///< from an answer until the next head is whole
    std::chrono::milliseconds taken{30'000};  ///< nothing of an answer is taken for so long
    std::vector<uid_t> users;                 ///< who may connect, beside root
  };
  using Handler = std::function<HttpReply(const HttpRequest&)>;

  /// Listens on a port of 127.0.0.1 that is free. Error: there is none.
  static Result<std::unique_ptr<HttpServer>> listen(Limits limits, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  /// Whether the kernel tells who connects.
  bool knows_users() const { return peers_.told(); }
  /// Serves until stop(). Call once. Error: no thread can be had.
  Status run();
  /// Makes run() return, from any thread, also before it was called. What is being answered is waited for, but not for
  /// clients.
  void stop();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Connection {
    explicit Connection(int descriptor) : fd(descriptor) {}
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    int fd;
    std::string bytes;       // of a head, and what came behind it
    std::size_t head = 0;    // its size; 0: it is not whole
    Time until;              // when it is closed while it waits
    bool closing = false;    // answered for the last time: the client is to close
    std::size_t thrown = 0;  // bytes that came after that
  };
  using Connections = std::list<Connection>;  // they go from list to list by splice(), which needs no memory

  HttpServer(Limits limits, Handler handler, int listener, int port, int wake);
  void accept_all();
  bool is_let_in(int connection) const;
  bool read(Connection& connection);
  void take_back();
  void wake() const;
  void work();
  bool answer(Connection& connection);
  HttpReply reply_to(const HttpRequest& request, std::string_view& failed);
  bool send(Connection& connection, const HttpReply& reply, bool head_alone, bool last);
  bool send_stream(Connection& connection, const HttpReply& reply);
  bool send_all(int fd, std::string_view bytes) const;

  const Limits limits_;
  const Handler handler_;
  const int listener_;
  const int port_;
  const int wake_;  // an eventfd
  const PeerUsers peers_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::size_t> streams_ = 0;

  Connections waiting_;  // of the thread in run()
  std::mutex mutex_;     // of what follows
  std::condition_variable more_;
  Connections queued_;
  Connections answered_;     // back to waiting
  std::size_t at_work_ = 0;  // with workers
};

}  // namespace karst::engine
