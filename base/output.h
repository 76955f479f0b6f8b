// SPDX-License-Identifier: MIT
// Where text and bytes go: a file that gets its name only when it is whole, standard output, or memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/new_file.h"
#include "base/result.h"

namespace karst {

/// Buffered (256 KiB), so that output of any length takes the same memory. Errors are sticky: after the first,
/// nothing is written any more, and finish() tells it; long loops look at failed() to stop early. Move-only; use
/// from one thread at a time. Destruction without finish() removes what was written of a file.
class Output {
 public:
  /// A file that gets its name with finish() (base/new_file.h). Devices, pipes, descriptors (/dev/stdout) and "-"
  /// (standard output) are written to directly. Error: the place cannot be written, or others may have led us there
  /// (base/output_place.h).
  static Result<Output> create(const std::filesystem::path& path);
  /// A new file in that directory; where there is one of the name, finish() replaces it.
  static Result<Output> create_in(const Descriptor& directory, const std::string& name);
  static Output to_stdout();
  /// Appends to `text`, which must outlive the Output.
  static Output to_string(std::string& text);

  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();

  void append(std::string_view text) {
    if (text.size() > kBufferSize - used_) {
      append_slowly(text);
      return;
    }
    std::memcpy(buffer_.get() + used_, text.data(), text.size());
    used_ += text.size();
  }
  void append(char c) { append(std::string_view(&c, 1)); }
  /// Where the next `size` bytes go, kMostRoom at most: what is written there is appended by take().
  char* room(std::size_t size) {
    if (size > kBufferSize - used_) flush();
    return buffer_.get() + used_;
  }
  void take(std::size_t size) { used_ += size; }
  static constexpr std::size_t kMostRoom = 4096;

  bool failed() const { return error_ != 0; }
  /// The reader of our pipe went away, as `head` does: not worth a word to the user.
  bool closed_pipe() const;
  /// Bytes appended.
  std::uint64_t size() const { return written_ + used_; }
  /// Writes what is left and gives a file its name. Call once. Error: a write failed; nothing is left of the file.
  Status finish();

 private:
  static constexpr std::size_t kBufferSize = 256 << 10;

  Output();
  void append_slowly(std::string_view text);
  void write(std::string_view text);
  void flush();
  Error write_error() const;

  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
  std::uint64_t written_ = 0;
  int fd_ = -1;
  int error_ = 0;  // errno of the first failure
  std::filesystem::path path_;
  Descriptor direct_;  // what is written to as it is
  NewFile file_;       // else
  std::string name_;   // of that; empty: there is none
  std::string* memory_ = nullptr;
};

}  // namespace karst
