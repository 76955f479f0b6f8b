// SPDX-License-Identifier: MIT
// A file descriptor that closes itself: the one class for this in the house. Not for the runtime, which is a guest.
#pragma once
#include <unistd.h>

#include <utility>

namespace karst {

/// Owns a descriptor, or none (any negative number). Move-only; use from one thread at a time.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  /// The caller's to close from here on.
  int release() { return std::exchange(number_, -1); }
  /// Closes it now. False: close(2) reports that what was written is not with the file system. Requires one.
  bool close() { return ::close(release()) == 0; }

 private:
  int number_ = -1;
};

}  // namespace karst
