// SPDX-License-Identifier: MIT
#include "sandbox/sandbox_helper.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace karst::sandbox {
namespace {

/// Lives until its process ends.
class Helper {
 public:
  Helper() {
    std::thread([this] { work(); }).detach();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_ready_; });  // what the start of a thread asks of the system is done
  }

  void begin(const std::function<void()>& work) {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    changed_.notify_all();
  }
  /// What the work has thrown.
  std::exception_ptr finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return work_ == nullptr; });
    return std::exchange(thrown_, nullptr);
  }

 private:
  [[noreturn]] void work() {
    std::unique_lock lock(mutex_);
    is_ready_ = true;
    changed_.notify_all();
    for (;;) {
      changed_.wait(lock, [this] { return work_ != nullptr; });
      lock.unlock();
      std::exception_ptr thrown;
      try {
        (*work_)();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      thrown_ = std::move(thrown);
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ready_ = false;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr thrown_;
};

Helper* g_helper;

}  // namespace

void start_helper() {
  if (std::thread::hardware_concurrency() < 2) return;
  try {
    g_helper = new Helper;
  } catch (const std::system_error&) {
    g_helper = nullptr;
  }
}

void side_by_side(const std::function<void()>& first, const std::function<void()>& second) {
  if (g_helper == nullptr) {
    first();
    second();
    return;
  }
  g_helper->begin(second);
  std::exception_ptr thrown;
  try {
    first();
  } catch (...) {
    thrown = std::current_exception();
  }
  const std::exception_ptr by_second = g_helper->finish();
  if (thrown != nullptr) std::rethrow_exception(thrown);
  if (by_second != nullptr) std::rethrow_exception(by_second);
}

}  // namespace karst::sandbox
