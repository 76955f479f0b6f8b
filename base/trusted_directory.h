// SPDX-License-Identifier: MIT
// A directory whose files karst runs or obeys, and that nobody else must be able to fill.
//
// For root each directory on the way, the directory and its files must be root's, and no other user may write to them;
// in a sticky directory what is root's is safe. Others may use whatever they can read: they do it with their own
// rights. The way is walked by descriptors, so that nothing can be exchanged between a check and its use.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace karst {

/// Move-only. Use from one thread at a time.
class TrustedDirectory {
 public:
  /// Whom it is trusted to.
  enum class Trust {
    kChecked,    ///< as above
    kAsOurself,  ///< it came with this program: who can change it can change the program
  };
  /// Error: why it is not used, with its path.
  static Result<TrustedDirectory> open(const std::filesystem::path& path, Trust trust);

  /// Names of what is in it, sorted; without those that begin with a dot.
  std::vector<std::string> names() const;
  /// Of a regular file all bytes. Error: why it is not read, with its path; also if it has more than `most` bytes.
  Result<std::string> read(const std::string& name, std::size_t most) const;
  std::filesystem::path path_of(const std::string& name) const { return path_ / name; }

 private:
  TrustedDirectory(Descriptor directory, std::filesystem::path path, bool is_checked)
      : directory_(std::move(directory)), path_(std::move(path)), is_checked_(is_checked) {}

  Descriptor directory_;
  std::filesystem::path path_;
  bool is_checked_;
};

}  // namespace karst
