// One list of functions for a whole trace. In the trace each process has ids of its own; the viewer (as `karst report`)
// takes what has the same module path, name, file and line for one function, whatever process or copy it is in.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "query/columns.h"
#include "reader/trace.h"

namespace karst::analysis {

using query::kNoFunction;

struct FunctionInfo {
  std::string name;
  std::int64_t module = -1;  ///< index into FunctionList::modules(); -1: not known
  std::int64_t file = -1;    ///< the same for files()
  std::uint32_t line = 0;    ///< 0: not known
  std::uint64_t calls = 0;   ///< in the whole trace
};

/// Only functions that were called are in it. Not thread-safe while it is filled.
class FunctionList {
 public:
  /// Counts `calls` calls of `id` of a process; `process` is an index into Trace::processes().
  void add(const reader::Trace& trace, std::uint32_t process, std::uint32_t id, std::uint64_t calls);

  const std::vector<FunctionInfo>& functions() const { return functions_; }
  const std::vector<std::string>& modules() const { return modules_; }
  const std::vector<std::string>& files() const { return files_; }
  bool has(std::uint32_t process, std::uint32_t id) const {
    return process < index_.size() && id < index_[process].size() && index_[process][id] != kNoFunction;
  }
  /// The function of an id that was added.
  std::uint32_t of(std::uint32_t process, std::uint32_t id) const { return index_[process][id]; }
  /// All of a process's, by id.
  const std::vector<std::uint32_t>& of_process(std::uint32_t process) const { return index_[process]; }

 private:
  std::vector<FunctionInfo> functions_;
  std::vector<std::string> modules_;
  std::vector<std::string> files_;
  std::map<std::string, std::int64_t> module_of_;
  std::map<std::string, std::int64_t> file_of_;
  std::unordered_map<std::string, std::uint32_t> by_key_;
  std::vector<std::vector<std::uint32_t>> index_;
};

}  // namespace karst::analysis
