// SPDX-License-Identifier: MIT
// The symbol tables of modules, as lookups want them: out of the cache, or read in a sandbox; the last ones at hand.
#pragma once
#include <cstddef>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "binary/debug_search.h"
#include "binary/module_file.h"
#include "sandbox/credentials.h"
#include "symbols/cache.h"
#include "symbols/symbol_table.h"

namespace karst::symbols {

/// Any thread may use it.
class ModuleTables {
 public:
  using Table = std::shared_ptr<const SymbolTable>;

  /// The module's table. Of a module that another user's process names (`as`) nothing is taken from the cache or put
  /// into it: a build-id is what a file says of itself.
  Result<Table> load(const binary::ModuleFile& file, const Cache& cache, const binary::DebugSearch& search,
                     const std::optional<sandbox::Credentials>& as);

 private:
  /// Bytes of tables that are kept at hand.
  static constexpr std::size_t kMost = std::size_t{64} << 20;

  struct Kept {
    std::string key;
    Table table;
  };
  Table find(const std::string& key);
  void keep(const std::string& key, const Table& table);

  std::mutex mutex_;
  std::list<Kept> kept_;  // used last, first
  std::size_t size_ = 0;
};

}  // namespace karst::symbols
