// SPDX-License-Identifier: MIT
// What sandboxes found of modules (patch/find.h), kept from run to run: a second start of a program waits for no
// analysis.
//
// A kept answer has code for the program in it, so it must be of the very file. A build-id would not do: that is what a
// file says of itself, and tools that change code leave it. The key is device, inode, size and both times of change,
// with what was asked for and which Karst it was. A file that changed moments ago is not kept: the next change may have
// the same time.
//
// Whatever lies in the directory is read as a stranger's: it is used only if it is ours alone, is whole and has the
// whole key in it. The decoder checks it as it checks a sandbox's answer, and so does the runtime.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cache_directory.h"

namespace karst::patch {

/// Any thread may use it; it holds no state but the directory.
class TableCache {
 public:
  /// Answers beyond this many bytes push out those not used for longest.
  static constexpr std::uint64_t kDefaultLimit = std::uint64_t{256} << 20;

  /// Off: finds nothing, keeps nothing.
  TableCache() = default;
  /// In `directory`, which is made at the first save.
  explicit TableCache(std::filesystem::path directory, std::uint64_t limit = kDefaultLimit);
  /// Where the user's environment says; off when it says nothing usable (no HOME, relative paths).
  static TableCache of_user();

  /// Names a file, as it is now, and what is wanted of it. Empty when it must not be kept.
  struct Key {
    std::string file;  ///< short enough for a file's name
    std::string text;  ///< all of it
    bool operator==(const Key&) const = default;
    bool empty() const { return text.empty(); }
  };
  /// `descriptor`: the module's file. `wanted`: the same for the same wishes, and different for others.
  Key key_of(int descriptor, std::string_view wanted) const;

  std::optional<std::vector<std::byte>> find(const Key& key) const;
  /// Returns whether it was saved.
  bool save(const Key& key, std::span<const std::byte> answer) const;
  /// Where it is or would be.
  std::filesystem::path file_of(const Key& key) const;

 private:
  CacheDirectory files_;
};

}  // namespace karst::patch
