// SPDX-License-Identifier: MIT
// Bytes packed by gzip (RFC 1952) while they are written.
#pragma once
#include <memory>
#include <string_view>

#include "base/output.h"

namespace karst::exporting {

/// Appends to `output`, which outlives it. Of one thread.
class GzipWriter {
 public:
  /// Throws std::bad_alloc when there is no memory for zlib.
  explicit GzipWriter(Output& output);
  ~GzipWriter();
  GzipWriter(GzipWriter&&) = delete;

  void append(std::string_view bytes);
  /// Writes what is left and the checksum. Call once, at the end.
  void finish();

 private:
  struct Stream;
  void pack(std::string_view bytes, bool is_last);

  Output& output_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace karst::exporting
