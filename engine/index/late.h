// SPDX-License-Identifier: MIT
// What is made of a trace when somebody first asks for it, and stays the same from then on: at most one of each type.
// Most of it needs the threads' notes, which an index from a cache does not have (engine/index/noted_threads.h).
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace karst::engine {

/// Any thread may ask.
class LateParts {
 public:
  /// Null: nobody made it yet.
  template <typename Of>
  std::shared_ptr<const Of> find() const {
    const std::lock_guard lock(mutex_);
    const auto at = parts_.find(key<Of>());
    return at == parts_.end() ? nullptr : std::static_pointer_cast<const Of>(at->second.made);
  }
  /// What is not there yet is made by `make`, while others who ask for it wait. `make` may give up with null: then
  /// whoever waits makes it.
  template <typename Of, typename Make>
  std::shared_ptr<const Of> find_or_make(Make&& make) {
    Part& part = part_of(key<Of>());
    const std::lock_guard making(part.making);
    if (auto known = find<Of>()) return known;
    std::shared_ptr<const Of> made = std::forward<Make>(make)();
    const std::lock_guard lock(mutex_);
    part.made = made;
    return made;
  }

 private:
  struct Part {
    std::mutex making;
    std::shared_ptr<const void> made;
  };

  template <typename Of>
  static const void* key() {
    static char of_type;  // its place tells the type
    return &of_type;
  }
  Part& part_of(const void* type) {
    const std::lock_guard lock(mutex_);
    return parts_[type];
  }

  mutable std::mutex mutex_;  // of parts_ and what was made
  std::map<const void*, Part> parts_;
};

}  // namespace karst::engine
