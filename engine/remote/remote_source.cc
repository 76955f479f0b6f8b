// SPDX-License-Identifier: MIT
#include "engine/remote/remote_source.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/json.h"

namespace karst::engine {
namespace {

constexpr std::chrono::milliseconds kFirstPause = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kLongestPause = std::chrono::seconds(30);
constexpr auto kLinkLook = std::chrono::milliseconds(250);

class RemoteSource : public Source {
 public:
  RemoteSource(RemoteOptions options, std::shared_ptr<Link> link)
      : options_(std::move(options)), link_(std::move(link)), keeping_([this] { keep(); }) {}
  ~RemoteSource() override { RemoteSource::stop(); }

  SourceReply answer(std::string_view path, const Parameters& parameters) override {
    const std::shared_ptr<Link> link = current();
    if (path == "alive") return keep_alive(link, parameters);
    return link->ask(path, parameters);
  }

  void page_is_opened() override { static_cast<void>(current()->ask({}, {})); }

  void stop() override {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
    link_->close();
  }

  std::string failure() const override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  /// A page's stream of events, through losses of the connection.
  class Events {
   public:
    Events(RemoteSource& source, std::shared_ptr<Link> link, Parameters parameters)
        : source_(source), parameters_(std::move(parameters)), link_(std::move(link)) {
      question_ = link_->begin("alive", parameters_);
    }
    ~Events() { link_->give_up(question_); }
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;

    bool more(std::string& text) {
      if (source_.is_stopping()) return false;
      if (question_ != 0 && link_->take(question_, text)) {
        if (text.empty()) text = ":\n\n";
        return true;
      }
      if (!std::exchange(away_, true)) {
        Json json;
        const LinkLoss loss = link_->is_lost() ? link_->loss() : LinkLoss{"karst there has ended"};
        json.open('{').field("why", loss.why).field("again", !loss.is_for_good).close('}');
        text += "\n\nevent: away\ndata: " + json.take() + "\n\n";
        return true;
      }
      const std::shared_ptr<Link> now = source_.await(link_);
      if (now == link_) {
        text += ":\n\n";
        return true;
      }
      link_->give_up(question_);
      link_ = now;
      question_ = link_->begin("alive", parameters_);
      away_ = false;
      text += "event: back\ndata: {}\n\n";
      return true;
    }

   private:
    RemoteSource& source_;
    const Parameters parameters_;
    std::shared_ptr<Link> link_;
    std::uint32_t question_ = 0;
    bool away_ = false;  // which was said
  };

  SourceReply keep_alive(const std::shared_ptr<Link>& link, const Parameters& parameters) {
    SourceReply reply;
    reply.type = "text/event-stream";
    reply.stream = [events = std::make_shared<Events>(*this, link, parameters)](std::string& text) {
      return events->more(text);
    };
    return reply;
  }

  std::shared_ptr<Link> current() const {
    const std::lock_guard lock(mutex_);
    return link_;
  }

  bool is_stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  /// For a quarter of a second: another connection than `known`.
  std::shared_ptr<Link> await(const std::shared_ptr<Link>& known) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, kLinkLook, [&] { return stopping_ || link_ != known; });
    return link_;
  }

  /// Whether it was stopped meanwhile.
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return stopped_.wait_for(lock, time, [this] { return stopping_; });
  }

  void fail(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = why;
    }
    options_.say(why);
  }

  // Sees to the connection.
  void keep() {
    while (!is_stopping()) {
      const std::shared_ptr<Link> link = current();
      if (!link->wait_for_loss()) continue;
      if (pause(kLinkLook)) return;  // Ctrl-C ends ssh as well as us
      const LinkLoss loss = link->loss();
      if (std::chrono::steady_clock::now() - opened_ > kLongestPause) wait_ = kFirstPause;
      if (loss.is_for_good) return fail(loss.why);
      options_.say(loss.why + ": trying again");
      if (!open_again()) return;
    }
  }

  /// False: it was stopped, or there is nothing to be had.
  bool open_again() {
    while (!pause(wait_)) {
      wait_ = std::min(2 * wait_, kLongestPause);
      auto opened = Link::open(options_, [this] { return is_stopping(); });
      if (const auto* const loss = std::get_if<LinkLoss>(&opened); loss != nullptr) {
        if (loss->is_for_good && !is_stopping()) fail(loss->why);
        if (loss->is_for_good) return false;
        continue;
      }
      options_.say("connected to " + options_.where + " again");
      opened_ = std::chrono::steady_clock::now();
      const std::lock_guard lock(mutex_);
      link_ = std::get<std::shared_ptr<Link>>(std::move(opened));
      if (stopping_) link_->close();
      stopped_.notify_all();
      return !stopping_;
    }
    return false;
  }

  const RemoteOptions options_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable stopped_;
  std::shared_ptr<Link> link_;
  bool stopping_ = false;
  std::string failure_;

  // Of the thread:
  std::chrono::milliseconds wait_ = kFirstPause;  // before the next try; a connection that holds makes it short again
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  std::jthread keeping_;  // the last: it uses all
};

}  // namespace

std::variant<std::unique_ptr<Source>, LinkLoss> remote_source(RemoteOptions options) {
  std::signal(SIGPIPE, SIG_IGN);
  auto opened = Link::open(options, options.stopping);
  if (auto* const loss = std::get_if<LinkLoss>(&opened); loss != nullptr) return std::move(*loss);
  try {
    return std::unique_ptr<Source>(
        std::make_unique<RemoteSource>(std::move(options), std::get<std::shared_ptr<Link>>(std::move(opened))));
  } catch (const std::system_error&) {
    return LinkLoss{"no thread could be had for the connection: the system allows no more"};
  }
}

}  // namespace karst::engine
