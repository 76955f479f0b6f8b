// The bytes of a file, aligned for the format's 8-byte words, mapped or read.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "reader/result.h"

namespace karst::reader {

/// Owns the bytes. Small files are read into memory. Large ones are mapped privately: nobody may
/// truncate such a file while it is open here (reading past its new end raises SIGBUS). Karst
/// itself never does: it replaces trace files by renaming.
class FileBytes {
 public:
  /// Error: missing, not a regular file, empty or not readable.
  static Result<FileBytes> open(const std::filesystem::path& path);
  /// Views `bytes`, which must outlive the result; copies them when they are not aligned to 8.
  static FileBytes view(std::span<const std::byte> bytes);

  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&&) = delete;
  ~FileBytes();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  FileBytes() = default;

  std::span<const std::byte> bytes_;
  std::unique_ptr<std::byte[]> owned_;
  bool mapped_ = false;
};

}  // namespace karst::reader
