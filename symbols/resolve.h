// SPDX-License-Identifier: MIT
// Fills in the names, files and lines of a process's functions.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/model.h"
#include "symbols/cache.h"
#include "symbols/generated_code.h"
#include "symbols/module_tables.h"
#include "symbols/sources.h"

namespace karst::symbols {

struct ResolveOptions {
  /// Where sources have moved; see PathMapping.
  std::vector<PathMapping> map_paths;
  Cache cache = Cache::of_user();
  binary::DebugSearch debug = binary::DebugSearch::of_environment();
  /// Whose rights lookups have; none: ours.
  std::optional<sandbox::Credentials> as{};
  std::shared_ptr<ModuleTables> tables = std::make_shared<ModuleTables>();

  ResolveOptions with(std::optional<sandbox::Credentials> rights) const {
    ResolveOptions changed = *this;
    changed.as = std::move(rights);
    return changed;
  }
  Result<ModuleTables::Table> table(const binary::ModuleFile& file) const {
    return tables->load(file, cache, debug, as);
  }
};

struct ResolveResult {
  std::size_t named = 0;    ///< functions that got a name from a symbol or from DWARF
  std::size_t unnamed = 0;  ///< functions that are called `module+0x1234`
  /// Per module, what is missing and what to do about it; `count` is the number of functions it concerns.
  std::vector<reader::Problem> problems;
  std::size_t text = 0;  ///< bytes of names and files, counted once for each function
};

/// Looks up each function, in sandboxes (sandbox.h), by its module's path and build-id and its own address, one module
/// after the other, so that one symbol table is in memory at a time. Sets name, link_name, file and line, and adds to
/// the process's `inlined`; files are the mapped paths. A function without a symbol is named `module+0x1234`: the
/// module's file name and the address in the ELF file, as addr2line takes it; generated code (generated_code.h)
/// `[jit]+0x1234`, its address in memory. Functions that have a link_name already (a resolved trace) are left as they
/// are. Locks in static data get the names of their variables (static_locks.h).
ResolveResult resolve(reader::Process& process, const ResolveOptions& options);

}  // namespace karst::symbols
