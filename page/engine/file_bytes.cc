// SPDX-License-Identifier: MIT
// FileBytes where there are no files: bytes that somebody else holds.
#include "reader/file_bytes.h"

#include <cstdlib>
#include <utility>

namespace karst::reader {

FileBytes FileBytes::view(std::span<const std::byte> bytes) {
  // The engine's rooms are aligned to 8.
  FileBytes result;
  result.bytes_ = bytes;
  return result;
}

Result<FileBytes> FileBytes::open(const std::filesystem::path& path, Large) {
  return Error{"cannot open the trace " + path.string() + ": a page has no files"};
}

Status FileBytes::unchanged() const { return Unit{}; }

FileBytes::FileBytes(FileBytes&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
FileBytes::~FileBytes() = default;

// Nothing is ever mapped.
Mapping::~Mapping() = default;
BusErrorGuard::~BusErrorGuard() = default;

}  // namespace karst::reader
