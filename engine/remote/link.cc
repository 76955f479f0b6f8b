// SPDX-License-Identifier: MIT
#include "engine/remote/link.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace karst::engine {
namespace {

constexpr auto kLinkWait = std::chrono::milliseconds(250);
constexpr auto kLongestEnd = std::chrono::seconds(2);  // of a child whose pipe has ended
constexpr int kSshFailed = 255;
constexpr int kNoProgram = 127;
constexpr int kUsage = 2;  // what an older karst says to a command line that it does not know

/// Lines of the other side for people, as many as somebody reads.
class Lines {
 public:
  explicit Lines(const RemoteOptions& options) : options_(options) {}
  void add(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n')
        tell();
      else if (c != '\r' && line_.size() < kLongest)
        line_ += c;
    }
  }
  void tell() {
    if (!line_.empty() && told_++ < kMost) options_.say(options_.where + ": " + printable(line_));
    line_.clear();
  }

 private:
  static constexpr std::size_t kLongest = 1000;
  static constexpr std::size_t kMost = 1000;
  const RemoteOptions& options_;
  std::string line_;
  std::size_t told_ = 0;
};

}  // namespace

std::variant<std::shared_ptr<Link>, LinkLoss> Link::open(const RemoteOptions& options, std::function<bool()> stopping) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return LinkLoss{std::string("no connection could be made: ") + std::strerror(errno)};
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  ChildProgram way = options.way;
  way.input = way.output = ChildStream::ours(theirs.get());
  way.errors = ChildStream::pipe();
  auto child = ChildProcess::start(way);
  theirs = Descriptor();
  if (!child) return LinkLoss{child.error().message};
  const std::shared_ptr<Link> link(new Link(options, std::move(*child), std::move(ours)));
  // Who waits for a password, or for a network, may be ended.
  const std::jthread watch([&link, stopping = std::move(stopping)](const std::stop_token& done) {
    while (!done.stop_requested()) {
      if (stopping()) return link->close();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  link->errors_ = std::jthread([self = link.get()](const std::stop_token& done) { self->read_errors(done); });
  if (auto failed = link->shake_hands(); std::holds_alternative<LinkLoss>(failed))
    return std::get<LinkLoss>(std::move(failed));
  link->reading_ = std::jthread([self = link.get()] { self->read_all(); });
  return link;
}

Link::Link(const RemoteOptions& options, ChildProcess child, Descriptor ours)
    : options_(options), child_(std::move(child)), ours_(std::move(ours)), reader_(ours_.get()), writer_(ours_.get()) {}

Link::~Link() {
  close();
  // The threads end with the child's pipes; they use what stands above.
  if (reading_.joinable()) reading_.join();
  errors_ = {};
}

std::variant<std::monostate, LinkLoss> Link::shake_hands() {
  const auto hello = reader_.hello();
  if (!hello) return loss_by_status(false);
  if (!understands(*hello))
    return LinkLoss{"karst " + printable(hello->version) + " on " + options_.where + " and karst " + options_.version +
                    " here do not understand each other: have the same version on both"};
  if (!writer_.send(FrameKind::kTarget, 0, question_bytes(options_.target, {{"keep", options_.keep ? "1" : "0"}})))
    return loss_by_status(true);
  const auto first = reader_.next();
  if (!first) return LinkLoss{options_.where + ": " + first.error().message};
  if (!*first) return loss_by_status(true);
  if ((*first)->kind == FrameKind::kRefused) return LinkLoss{options_.where + ": " + printable((*first)->bytes)};
  if ((*first)->kind != FrameKind::kReady) return LinkLoss{options_.where + ": what came is no answer of karst's"};
  return std::monostate();
}

LinkLoss Link::loss_by_status(bool has_begun) {
  std::optional<int> status;
  const auto until = std::chrono::steady_clock::now() + kLongestEnd;
  while (!status) {
    const std::lock_guard lock(child_mutex_);
    if (std::chrono::steady_clock::now() > until) child_.kill(SIGKILL);
    status = child_.wait_for(std::chrono::milliseconds(20));
    waited_ = status.has_value();
  }
  const std::string there = "on " + options_.where;
  if (WIFSIGNALED(*status) && WTERMSIG(*status) != SIGKILL && WTERMSIG(*status) != SIGTERM)
    return {options_.way.file + " was ended by a signal: " + ::strsignal(WTERMSIG(*status)), false};
  if (!WIFEXITED(*status)) return {"the connection to " + options_.where + " was ended", false};
  if (WEXITSTATUS(*status) == kSshFailed)
    return {(has_begun ? "the connection is lost to " : "there is no connection to ") + options_.where, false};
  if (!has_begun && WEXITSTATUS(*status) == kNoProgram)
    return {"there is no karst " + there +
            " where programs that ssh starts are looked for: install it, or say where it is by --karst"};
  if (!has_begun && WEXITSTATUS(*status) == kUsage)
    return {"karst " + there + " is of a version that cannot be looked at from here: have the same version on both"};
  if (!has_begun) return {"what answered " + there + " is no karst"};
  return {"karst " + there + " has ended"};
}

// A connection that ssh shares (ControlPersist) holds this pipe for longer than ssh itself: it is not read to its end.
void Link::read_errors(const std::stop_token& done) {
  Lines lines(options_);
  std::array<char, 4096> bytes;
  while (true) {
    pollfd ready{child_.errors().get(), POLLIN, 0};
    const int are_ready = ::poll(&ready, 1, 100);
    if (are_ready == 0 && done.stop_requested()) break;
    if (are_ready == 0 || (are_ready < 0 && errno == EINTR)) continue;
    const ssize_t n = ::read(ready.fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    lines.add({bytes.data(), static_cast<std::size_t>(n)});
  }
  lines.tell();
}

void Link::read_all() {
  std::optional<LinkLoss> loss;
  while (!loss) {
    auto frame = reader_.next();
    if (!frame)
      loss = LinkLoss{options_.where + ": " + frame.error().message};
    else if (!*frame)
      loss = loss_by_status(true);
    else if (!accept(**frame))
      loss = LinkLoss{options_.where + ": what came is no answer of karst's"};
  }
  close();
  const std::lock_guard lock(mutex_);
  lost_ = true;
  loss_ = std::move(*loss);
  changed_.notify_all();
}

bool Link::accept(const Frame& frame) {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(frame.question);
  if (found == pending_.end()) return frame.question != 0 && frame.question <= last_;  // given up
  Pending& pending = found->second;
  if (pending.too_large) return true;
  if (pending.ended || pending.has_head == (frame.kind == FrameKind::kHead)) return false;
  switch (frame.kind) {
    case FrameKind::kHead: {
      auto head = parse_head(frame.bytes);
      if (!head) return false;
      pending.head = std::move(*head);
      pending.has_head = true;
      return true;
    }
    case FrameKind::kBody:
      return add(pending, frame.bytes);
    case FrameKind::kPacked: {
      const auto bytes = unpack_body(frame.bytes);
      return bytes && add(pending, *bytes);
    }
    case FrameKind::kEnd:
      pending.ended = true;
      changed_.notify_all();
      return true;
    default:
      return false;
  }
}

bool Link::add(Pending& pending, std::string_view bytes) {
  if (pending.head.goes_on && pending.body.size() + bytes.size() > kMostEvents) return false;
  if (pending.body.size() + bytes.size() > kMostAnswer || held_ + bytes.size() > kMostHeld) {
    held_ -= pending.body.size();
    pending.body.clear();
    pending.body.shrink_to_fit();
    pending.too_large = pending.ended = true;
  } else {
    pending.body += bytes;
    held_ += bytes.size();
  }
  if (pending.head.goes_on || pending.ended) changed_.notify_all();
  return true;
}

std::uint32_t Link::send_question(std::string_view path, const Parameters& parameters) {
  std::uint32_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return 0;
    number = ++last_;
    pending_[number];
  }
  const std::string bytes = question_bytes(path, parameters);
  if (bytes.size() <= kMostFrame && writer_.send(FrameKind::kAsk, number, bytes)) return number;
  const std::lock_guard lock(mutex_);
  pending_.erase(number);
  return 0;
}

Reply Link::lost_reply() const {
  const std::lock_guard lock(mutex_);
  return error_reply(503, lost_ ? loss_.why : "there is no connection to " + options_.where);
}

Reply Link::ask(std::string_view path, const Parameters& parameters) {
  const std::uint32_t number = send_question(path, parameters);
  if (number == 0) return lost_reply();
  Pending pending;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lost_ || pending_[number].ended; });
    pending = std::move(pending_[number]);
    pending_.erase(number);
    held_ -= pending.body.size();
  }
  if (!pending.ended) return lost_reply();
  if (pending.too_large) return error_reply(413, "the answer is too large to be brought from " + options_.where);
  Reply reply = std::move(pending.head.reply);
  reply.body = std::move(pending.body);
  return reply;
}

std::uint32_t Link::begin(std::string_view path, const Parameters& parameters) {
  return send_question(path, parameters);
}

bool Link::take(std::uint32_t question, std::string& text) {
  std::unique_lock lock(mutex_);
  const auto found = pending_.find(question);
  if (found == pending_.end()) return false;
  Pending& pending = found->second;
  changed_.wait_for(lock, kLinkWait, [&] { return lost_ || pending.ended || !pending.body.empty(); });
  held_ -= pending.body.size();
  text += std::exchange(pending.body, {});
  return !pending.ended && !lost_;
}

void Link::give_up(std::uint32_t question) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(question);
    if (found == pending_.end()) return;
    held_ -= found->second.body.size();
    pending_.erase(found);
    if (lost_) return;
  }
  static_cast<void>(writer_.send(FrameKind::kGiveUp, question));
}

bool Link::wait_for_loss() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kLinkWait, [this] { return lost_; });
}

bool Link::is_lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

LinkLoss Link::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

void Link::close() {
  // Also where it is not the child that holds the other end, but a child of its own.
  ::shutdown(ours_.get(), SHUT_RDWR);
  const std::lock_guard lock(child_mutex_);
  if (!waited_) child_.kill(SIGTERM);
}

}  // namespace karst::engine
