// The bytes' way to the disk for TraceWriter: a temporary file with buffering and sticky errors, or memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "reader/result.h"

namespace karst::collect {

/// A file that gets its name only when it is whole. Move-only; closes and removes what was not committed.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::filesystem::path& path);
  static OutputFile to_memory(std::vector<std::byte>& out);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// Appends. After the first failure only counts.
  void append(std::span<const std::byte> bytes);
  /// Bytes appended, written or not.
  std::uint64_t size() const { return size_; }
  bool failed() const { return error_ != 0; }
  /// Replaces bytes at the start, flushes and renames to the final name.
  Status commit(std::span<const std::byte> new_start);

 private:
  OutputFile() = default;
  void flush();
  Error write_error() const;
  void remove_temporary();

  int fd_ = -1;
  int error_ = 0;  // errno of the first failure
  std::uint64_t size_ = 0;
  std::filesystem::path final_path_;
  std::string temporary_;  // empty: memory, or committed
  std::vector<std::byte> buffer_;
  std::vector<std::byte>* memory_ = nullptr;
};

}  // namespace karst::collect
