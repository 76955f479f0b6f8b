// SPDX-License-Identifier: MIT
// The bytes of a foreign file: mapped as they are, or unpacked into memory.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "reader/mapping.h"

namespace karst::importing {

/// Owns the bytes.
class ForeignBytes {
 public:
  /// All of an open file, unpacked where it is gzip's. Error: it cannot be read, is damaged, or has 4 GiB and more
  /// once it is unpacked.
  static Result<ForeignBytes> read(int file);

  std::string_view view() const;
  /// False: the file became shorter meanwhile, so what was read of it is not what it said.
  bool is_whole() const { return !mapped_ || !mapped_->lost(); }

 private:
  std::string unpacked_;
  std::optional<reader::Mapping> mapped_;
};

}  // namespace karst::importing
