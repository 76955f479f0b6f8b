// SPDX-License-Identifier: MIT
// A file mapped for reading, whose reader survives that others write to it.
//
// Where a mapped file is cut short, or its disk fails, the processor's next look at it raises SIGBUS. Here that is no
// end: pages that cannot be had read as zeros (reader/bus_errors.h), and lost() says so. Other changes show as
// other bytes at once, so who reads takes each number once and checks what it took.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "reader/bus_errors.h"

namespace karst::reader {

/// Owns the mapping.
class Mapping {
 public:
  /// The first `size` bytes of the file. Nothing: it cannot be mapped; then it is to be read.
  static std::optional<Mapping> of(int fd, std::size_t size);
  Mapping(Mapping&& other) noexcept = default;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Whether some of it could not be had when it was looked at.
  bool lost() const { return guard_->met_error(); }

 private:
  explicit Mapping(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes_;
  std::unique_ptr<BusErrorGuard> guard_;
};

}  // namespace karst::reader
