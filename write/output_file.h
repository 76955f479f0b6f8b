// SPDX-License-Identifier: MIT
// The bytes' way to the disk for TraceWriter: a temporary file with buffering and sticky errors, or memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/new_file.h"
#include "base/result.h"

namespace karst::writing {

/// A file that gets its name only when it can be used: as a whole, or in two parts, the second of which may fail.
///
/// Where its name is and how it gets it: base/output_place.h, base/new_file.h. What has its name is on the disk: bytes
/// first, then the name (fsync of the file, then of its directory).
/// Move-only; one thread at a time.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::filesystem::path& path);
  /// The name is STEM-N.karst, with the first N that is free when the file gets it.
  static Result<OutputFile> create_numbered(const std::string& stem);
  static OutputFile to_memory(std::vector<std::byte>& out);

  OutputFile(OutputFile&& other) noexcept = default;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// Appends. After the first failure only counts. What follows publish() stays in memory until commit().
  void append(std::span<const std::byte> bytes);
  /// Bytes appended, written or not.
  std::uint64_t size() const { return size_; }
  bool failed() const { return error_ != 0; }
  /// Gives the file its name before it is whole, with these bytes at the start: what is appended from here on is in it
  /// at each flush(). Error: it cannot be written, or named.
  Status grow(std::span<const std::byte> new_start);
  bool grows() const { return grows_; }
  /// What was appended is in the file.
  void flush();
  /// Of a file that grows, if a write has failed: so many bytes are in it.
  std::uint64_t written() const { return written_; }
  /// Of a file that grows: takes back what follows `size`, and lets one try again. Returns why nothing could be
  /// written; empty: it could, and nothing was done.
  std::string cut_back(std::uint64_t size);
  /// Replaces bytes at the start and gives the file its name. It is whole then; what is appended from here on replaces
  /// the bytes from `keep` on when it is committed.
  Status publish(std::span<const std::byte> new_start, std::uint64_t keep);
  /// Replaces bytes at the start, and gives the file its name if publish() has not. An error of the second part leaves
  /// the file as publish() made it.
  Status commit(std::span<const std::byte> new_start);
  /// The final name. Of a numbered file: the one that it got, and before that its stem.
  const std::filesystem::path& path() const { return final_path_; }

  /// Another descriptor of the file, whatever has its name by then; none where there is none to be had.
  Descriptor duplicate() const;

 private:
  OutputFile() = default;
  static Result<OutputFile> begin(const std::filesystem::path& path, bool numbered);
  void write_out();
  void write_out(std::span<const std::byte> bytes);
  void write_at_start(std::span<const std::byte> bytes);
  void take_name();
  Status add_second_part(std::span<const std::byte> new_start);
  Error write_error() const;

  NewFile file_;
  std::string name_;  // its last part; of a numbered file: its stem
  int error_ = 0;     // errno of the first failure
  std::uint64_t size_ = 0;
  std::filesystem::path final_path_;
  bool numbered_ = false;
  bool published_ = false;
  bool grows_ = false;
  std::uint64_t written_ = 0;  // until publish()
  std::vector<std::byte> buffer_;
  std::uint64_t keep_ = 0;               // published: where the second part goes
  std::vector<std::byte> first_ending_;  // what is there instead of it
  std::vector<std::byte>* memory_ = nullptr;
};

}  // namespace karst::writing
