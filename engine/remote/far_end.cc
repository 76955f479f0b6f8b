// SPDX-License-Identifier: MIT
#include "engine/remote/far_end.h"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/remote/frames.h"

namespace karst::engine {
namespace {

constexpr std::size_t kMostAtOnce = 64;  // questions; a server asks fewer

class FarEnd {
 public:
  FarEnd(Source& source, int in, int out) : source_(source), reader_(in), writer_(out) {}

  Status run() {
    std::string why;
    if (writer_.send(FrameKind::kReady, 0)) why = take_all();
    source_.stop();
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [number, wanted] : at_work_) *wanted = false;
    }
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return at_work_.empty(); });
    if (!why.empty()) return Error{std::move(why)};
    return Unit{};
  }

 private:
  /// Why it ended; empty: the other side has gone.
  std::string take_all() {
    while (true) {
      auto frame = reader_.next();
      if (!frame) return frame.error().message;
      if (!*frame) return {};
      const std::uint32_t number = (*frame)->question;
      if ((*frame)->kind == FrameKind::kGiveUp) {
        const std::lock_guard lock(mutex_);
        if (const auto found = at_work_.find(number); found != at_work_.end()) *found->second = false;
        continue;
      }
      auto question = (*frame)->kind == FrameKind::kAsk ? parse_question((*frame)->bytes) : std::nullopt;
      if (!question) return "what came is no question of karst's";
      begin(number, std::move(*question));
    }
  }

  void begin(std::uint32_t number, FrameQuestion question) {
    auto wanted = std::make_shared<std::atomic<bool>>(true);
    {
      const std::lock_guard lock(mutex_);
      if (at_work_.size() >= kMostAtOnce || !at_work_.emplace(number, wanted).second) wanted = nullptr;
    }
    if (wanted == nullptr) return refuse(number, "too many questions at once");
    try {
      std::thread([this, number, wanted, question = std::move(question)] {
        answer(number, question, *wanted);
        const std::lock_guard lock(mutex_);
        at_work_.erase(number);
        ended_.notify_all();
      }).detach();  // run() waits for all
    } catch (const std::system_error&) {
      refuse(number, "no thread could be had for this answer: the system allows no more");
      const std::lock_guard lock(mutex_);
      at_work_.erase(number);
    }
  }

  void refuse(std::uint32_t number, const char* why) { whole(number, error_reply(503, why)); }

  void whole(std::uint32_t number, const Reply& reply) {
    static_cast<void>(writer_.send(FrameKind::kHead, number, head_bytes(reply, false)) &&
                      writer_.send_body(number, reply.body) && writer_.send(FrameKind::kEnd, number));
  }

  void answer(std::uint32_t number, const FrameQuestion& question, const std::atomic<bool>& wanted) {
    try {
      if (question.path.empty()) {
        source_.page_is_opened();
        return whole(number, {});
      }
      SourceReply reply = source_.answer(question.path, question.parameters);
      if (!reply.stream) return whole(number, reply);
      bool goes_on = writer_.send(FrameKind::kHead, number, head_bytes(reply, true));
      for (std::string text; goes_on && wanted; text.clear())
        goes_on = reply.stream(text) && writer_.send_body(number, text);
      reply.stream = nullptr;  // what it holds has gone when the other side hears of its end
      static_cast<void>(writer_.send(FrameKind::kEnd, number));
    } catch (const std::bad_alloc&) {
      refuse(number, "there is not enough memory for this answer");
    }
  }

  Source& source_;
  FrameReader reader_;
  FrameWriter writer_;
  std::mutex mutex_;  // of what follows
  std::condition_variable ended_;
  std::map<std::uint32_t, std::shared_ptr<std::atomic<bool>>> at_work_;  // whether it is still wanted
};

}  // namespace

Status answer_frames(Source& source, int in, int out) {
  std::signal(SIGPIPE, SIG_IGN);
  return FarEnd(source, in, out).run();
}

}  // namespace karst::engine
