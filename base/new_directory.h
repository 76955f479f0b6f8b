// SPDX-License-Identifier: MIT
// A directory that gets its name when all of it is there. Until then it has a hidden one beside it.
#pragma once
#include <filesystem>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace karst {

/// Move-only; one thread at a time.
class NewDirectory {
 public:
  /// Error: why there can be none, with the path. An empty directory may be there, and nothing else.
  static Result<NewDirectory> create(const std::filesystem::path& path);
  NewDirectory(NewDirectory&& other) noexcept;
  NewDirectory& operator=(NewDirectory&&) = delete;
  /// Removes it with all that is in it, unless it has its name.
  ~NewDirectory();

  /// For openat() and the like.
  const Descriptor& descriptor() const { return directory_; }
  /// A path to it that only this process has, for libraries that take paths. It leads there whatever its name is.
  std::string path() const;
  /// Gives it its name and the mode of a new directory of the user's. Call once. Error: with the path.
  Status finish();

 private:
  NewDirectory() = default;

  std::filesystem::path path_;  // as it was asked for
  Descriptor parent_, directory_;
  std::string hidden_, name_;
};

}  // namespace karst
