// SPDX-License-Identifier: MIT
// A directory of files that can be made again at any time: what symbols and the viewer keep from run to run.
//
// It is the user's alone (mode 0700, files 0600); what others own in it is not looked at. It is reached as an output's
// place is (base/output_place.h), and what is done in it goes by its descriptor. Writers in several processes
// do not disturb each other: each writes a file of its own and renames it. Nothing here is ever fatal.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.h"

namespace karst {

/// Writes all of it at the descriptor's place.
bool write_whole(int fd, std::span<const std::byte> bytes);

/// Any thread may use it; it holds no state.
class CacheDirectory {
 public:
  /// Off: finds nothing, keeps nothing.
  CacheDirectory() = default;
  /// Files of `suffix` in `directory`, which is made at the first save. Those not used for longest go when there are
  /// more than `limit` bytes.
  CacheDirectory(std::filesystem::path directory, std::string_view suffix, std::uint64_t limit)
      : directory_(std::move(directory)), suffix_(suffix), limit_(limit) {}
  /// `karst`, and `below` in it, in $XDG_CACHE_HOME, else in ~/.cache; empty when the environment names neither, or by
  /// a relative path, or what is there of it belongs to another user.
  static std::filesystem::path of_user(std::string_view below = {});
  /// The same for what a user did, as a history: in $XDG_STATE_HOME, else in ~/.local/state.
  static std::filesystem::path state_of_user();

  bool on() const { return !directory_.empty(); }
  const std::filesystem::path& directory() const { return directory_; }
  std::uint64_t limit() const { return limit_; }
  /// Where what has this key (raw bytes, at most 64) is or would be; empty: nowhere.
  std::filesystem::path file_of(std::string_view key) const;

  /// Opens a regular file that is the user's own; -1: there is none. `flags`: O_RDONLY or O_RDWR.
  static Descriptor open(const std::filesystem::path& file, int flags, struct stat& status);
  /// Notes that it was used now, which is when the file was read last; its time of change stays.
  static void used(int fd);
  /// Makes the directory and those above it.
  bool make() const { return bool(hold(true)); }
  /// Makes an empty file of that name; false where there is one, or it cannot be made.
  bool make_mark(const std::string& name) const;
  /// Writes a file by `write`, and lets others see it when it is whole. False: it was not written.
  bool save(const std::filesystem::path& file, const std::function<bool(int fd)>& write) const;

 private:
  Descriptor hold(bool make) const;
  void drop_oldest(const Descriptor& directory) const;

  std::filesystem::path directory_;
  std::string suffix_;
  std::uint64_t limit_ = 0;
};

}  // namespace karst
