// SPDX-License-Identifier: MIT
// Symbol tables kept from run to run, one file for each build-id.
//
// A build-id names a module's contents, so a table found by it needs no look at the module, which may even be
// gone. The directory is $XDG_CACHE_HOME/karst, else ~/.cache/karst. Nothing here is ever
// fatal: without a directory, with a full disk, or with a file that is damaged, hostile, foreign or of another version,
// tables are built anew, and saved again where that is possible.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/cache_directory.h"
#include "symbols/symbol_table.h"

namespace karst::symbols {

/// Any thread may use it; it holds no state but the directory.
class Cache {
 public:
  /// Tables beyond this many bytes push out those not used for longest.
  static constexpr std::uint64_t kDefaultLimit = std::uint64_t{1} << 30;

  /// Off: finds nothing, keeps nothing.
  Cache() = default;
  /// In `directory`, which is made at the first save.
  explicit Cache(std::filesystem::path directory, std::uint64_t limit = kDefaultLimit);
  /// Where the user's environment says; off when it says nothing usable (no HOME, relative paths).
  static Cache of_user();

  bool on() const { return files_.on(); }
  /// Where the table for a build-id (raw bytes) is or would be kept; empty for none.
  std::filesystem::path file_of(std::string_view build_id) const;
  /// The table saved for this build-id, if it is there and sound.
  std::optional<SymbolTable> find(std::string_view build_id) const;
  /// Saves a table under its build-id. A table without build-id, or without all of its debug information (which may be
  /// installed later), is not kept. Returns whether it was saved.
  bool save(const SymbolTable& table) const;

  /// find(), else SymbolTable::load() and save().
  Result<SymbolTable> load(const std::filesystem::path& module, std::string_view build_id,
                           const binary::DebugSearch& search = {}) const;

 private:
  CacheDirectory files_;
};

}  // namespace karst::symbols
