// SPDX-License-Identifier: MIT
// Memory that a file backs raises SIGBUS where the file has got shorter, its pages are damaged, or memory is short.
//
// While a BusErrorGuard lives such an access within its range meets zeros instead, and what is written there is lost:
// the page that could not be had is replaced by an empty one of our own.
#pragma once
#include <cstddef>

namespace karst::reader {

/// Of a mapping that is page-aligned and outlives it. Any thread. The first one sets the process's handler of SIGBUS,
/// which hands on what is in no guard's range.
class BusErrorGuard {
 public:
  BusErrorGuard(const void* begin, std::size_t size);
  ~BusErrorGuard();
  BusErrorGuard(const BusErrorGuard&) = delete;
  BusErrorGuard& operator=(const BusErrorGuard&) = delete;

  /// Whether some page of it was replaced.
  bool met_error() const;

  struct Range;

 private:
  Range* range_;
};

}  // namespace karst::reader
