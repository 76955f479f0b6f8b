// SPDX-License-Identifier: MIT
// The bytes of a file, aligned for the format's 8-byte words, mapped or read.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/result.h"
#include "reader/mapping.h"

namespace karst::reader {

/// Owns the bytes. Small files are read into memory. Large ones are mapped: what others write to such a file shows here
/// at any time, so who reads takes each number once, and asks unchanged() in the end. Karst itself
/// replaces traces by renaming, or adds to their end while they are recorded.
class FileBytes {
 public:
  enum class Large : std::uint8_t {
    kMapped,
    kRead,  ///< for hosts whose SIGBUS is not ours: a mapped file that gets shorter raises it
  };
  /// Error: missing, not a regular file, empty or not readable.
  static Result<FileBytes> open(const std::filesystem::path& path, Large large = Large::kMapped);
  /// Views `bytes`, which must outlive the result; copies them when they are not aligned to 8.
  static FileBytes view(std::span<const std::byte> bytes);

  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&&) = delete;
  ~FileBytes();

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Error: the file is not what it was when it was opened, so that what was read may fit nothing. Any thread may ask.
  Status unchanged() const;
  /// What is behind the bytes may change from here on, and the file's times: others add to it.
  void let_grow() { grows_ = true; }

 private:
  FileBytes() = default;

  /// What is looked at again of a mapped file.
  struct Mapped {
    Mapped(Mapping bytes, Descriptor descriptor) : mapping(std::move(bytes)), file(std::move(descriptor)) {}

    Mapping mapping;
    Descriptor file;
    struct stat status {};
    std::string path;
  };

  std::span<const std::byte> bytes_;
  std::unique_ptr<std::byte[]> owned_;
  std::unique_ptr<Mapped> mapped_;
  bool grows_ = false;
};

}  // namespace karst::reader
