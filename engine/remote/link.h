// SPDX-License-Identifier: MIT
// One connection to a karst on another machine: a program whose pipes lead there, as ssh, and the questions under way.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "base/child_process.h"
#include "base/descriptor.h"
#include "engine/remote/frames.h"
#include "engine/server/source.h"

namespace karst::engine {

/// How a karst on another machine is reached, and what is wanted of it.
struct RemoteOptions {
  ChildProgram way;                ///< its streams are set here
  std::string where;               ///< the machine, as messages name it
  std::string target;              ///< a file, or a process by number or name
  bool keep = false;               ///< what the page is told: its server goes on when it is closed
  std::string version;             ///< of this karst
  std::function<bool()> stopping;  ///< asked while the first connection is made: give up?
  /// Is given lines for people, from any thread: what happens to the connection, and what comes from there.
  std::function<void(std::string_view)> say;
};

/// Why there is no connection.
struct LinkLoss {
  std::string why;
  bool is_for_good = true;  ///< it need not be tried again
};

/// Thread-safe. All that comes is bounded: a frame, an answer, all answers together, lines for people.
class Link {
 public:
  static constexpr std::size_t kMostAnswer = std::size_t{512} << 20;  ///< bytes
  static constexpr std::size_t kMostHeld = std::size_t{1} << 30;      ///< bytes of all answers that nobody took yet
  static constexpr std::size_t kMostEvents = 1 << 20;                 ///< bytes of a stream

  /// Waits until the other side is ready, for as long as ssh asks for passwords. `stopping` is asked now and then:
  /// whether to give up.
  static std::variant<std::shared_ptr<Link>, LinkLoss> open(const RemoteOptions& options,
                                                            std::function<bool()> stopping);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Waits for the whole answer. The connection's loss is an answer, too.
  Reply ask(std::string_view path, const Parameters& parameters);
  /// For a stream: the number of the question; 0: the connection is lost.
  std::uint32_t begin(std::string_view path, const Parameters& parameters);
  /// Appends what came of a stream, waits for it for a quarter of a second. False: it has ended.
  bool take(std::uint32_t question, std::string& text);
  void give_up(std::uint32_t question);

  /// Waits for a quarter of a second. Whether the connection is lost.
  bool wait_for_loss();
  bool is_lost() const;
  /// Requires is_lost().
  LinkLoss loss() const;
  /// All that wait go on.
  void close();

 private:
  struct Pending {
    FrameHead head;
    bool has_head = false;
    bool ended = false;
    bool too_large = false;
    std::string body;
  };

  Link(const RemoteOptions& options, ChildProcess child, Descriptor ours);
  std::variant<std::monostate, LinkLoss> shake_hands();
  LinkLoss loss_by_status(bool has_begun);
  void read_all();
  bool accept(const Frame& frame);
  bool add(Pending& pending, std::string_view bytes);
  void read_errors(const std::stop_token& done);
  Reply lost_reply() const;
  std::uint32_t send_question(std::string_view path, const Parameters& parameters);

  const RemoteOptions options_;
  ChildProcess child_;  // ended and waited for behind child_mutex_
  std::mutex child_mutex_;
  bool waited_ = false;    // for the child
  const Descriptor ours_;  // a socket: who waits for it can be woken
  FrameReader reader_;
  FrameWriter writer_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<std::uint32_t, Pending> pending_;
  std::uint32_t last_ = 0;
  std::size_t held_ = 0;
  bool lost_ = false;
  LinkLoss loss_;
  std::jthread reading_;
  std::jthread errors_;
};

}  // namespace karst::engine
