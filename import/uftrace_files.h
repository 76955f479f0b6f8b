// SPDX-License-Identifier: MIT
// The files of an uftrace directory that say what its threads are, and what lies at which address.
//
// Names of files come from other files there: none of them may lead out of the directory.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace karst::importing {

/// All of a regular file of the directory. None: there is none of this name, or it is too large for its kind.
std::optional<std::string> read_member(int directory, const std::string& name, std::size_t most);

/// Functions of one module, by their first address in it.
class UftraceSymbols {
 public:
  /// `text` as uftrace writes NAME.sym.
  explicit UftraceSymbols(std::string_view text);
  /// Which file's symbols they are.
  const std::string& path() const { return path_; }
  /// Empty: none is there.
  std::string_view name_at(std::uint64_t offset) const;

 private:
  struct Symbol {
    std::uint64_t begin = 0;
    std::string name;  ///< empty: what lies there is no function
  };
  std::string path_;
  std::vector<Symbol> symbols_;
};

/// What was mapped where in a process, from one exec to the next.
class UftraceSession {
 public:
  /// Reads the map of session `sid`, and symbols of modules as they are needed.
  UftraceSession(int directory, const std::string& sid);
  /// `module+0x1234` where there is no symbol; `0x1234` where there is no module either.
  std::string name_at(std::uint64_t address);

 private:
  struct Module {
    std::uint64_t end = 0;
    std::uint64_t base = 0;  ///< where the file's first mapping begins
    std::string path;
    std::string build_id;
    std::optional<UftraceSymbols> symbols;
    bool was_looked_for = false;
  };
  void find_symbols(Module& module);

  int directory_;
  std::map<std::uint64_t, Module> modules_;  // by their begin
};

struct UftraceTask {
  std::uint32_t tid = 0;
  std::uint32_t pid = 0;
};
struct UftraceExec {
  std::uint64_t ns = 0;
  std::string sid;
  std::string executable;
};
/// task.txt.
struct UftraceTasks {
  std::vector<UftraceTask> tasks;
  std::map<std::uint32_t, std::vector<UftraceExec>> execs;  ///< by pid, in order of time
  std::map<std::uint32_t, std::uint32_t> parents;           ///< of processes that were forked

  explicit UftraceTasks(std::string_view text);
};

}  // namespace karst::importing
