// SPDX-License-Identifier: MIT
// A descriptor of the runtime's own, in a process that knows nothing of it.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// Keeps out of the way: a high number, as programs count on getting the lowest free one and standard streams may be
/// closed; no program that is exec'd has it. The program may close it at any time and have a file of its own under the
/// number, so it is looked at before it is used. Any thread may use it, one changes it.
class OwnDescriptor {
 public:
  /// Owns what a system call returned, which may be an error.
  void take(long low);
  bool is_there() const { return number_ >= 0 && identity_of(number_) == identity_; }
  /// Negative: there is none.
  int number() const { return number_; }
  void close();

  /// In a process that has copies of the program's descriptors: closes all but ours.
  static void close_all_others();

 private:
  static std::uint64_t identity_of(int number);
  int number_ = -1;
  std::uint64_t identity_ = 0;
};

}  // namespace karst::runtime
