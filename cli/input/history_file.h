// SPDX-License-Identifier: MIT
// What a user typed at a prompt, kept from one prompt to the next in the user's own directory, for the user alone.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "base/cache_directory.h"

namespace karst::cli {

/// Prompts in several terminals may share a file: each entry is added to what is there. Never fails: where nothing can
/// be kept, or the directory is not the user's, nothing is.
class HistoryFile {
 public:
  /// NAME.history of CacheDirectory::state_of_user().
  explicit HistoryFile(const std::string& name);

  /// The oldest first. An entry may have several lines.
  std::vector<std::string> entries() const;
  void add(const std::string& entry) const;

 private:
  CacheDirectory directory_;
  std::filesystem::path file_;
};

}  // namespace karst::cli
