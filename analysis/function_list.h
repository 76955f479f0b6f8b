// SPDX-License-Identifier: MIT
// One list of functions for a whole trace. In the trace each process has ids of its own; the viewer (as `karst report`)
// takes what has the same module path, name, file and line for one function, whatever process or copy it is in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "columns/columns.h"
#include "reader/trace.h"

namespace karst::analysis {

using columns::kNoFunction;

struct FunctionInfo {
  std::string name;
  std::int64_t module = -1;  ///< index into FunctionList::modules(); -1: not known
  std::int64_t file = -1;    ///< the same for files()
  std::uint32_t line = 0;    ///< 0: not known
  bool occurs = false;       ///< some call is of it, though perhaps none that counts
  std::uint64_t calls = 0;   ///< in the whole trace
};

/// Functions under numbers: their places in functions(). Not thread-safe while it is filled.
class FunctionList {
 public:
  /// Empty: functions get numbers as they are added.
  FunctionList() = default;
  /// Has all functions of the trace's table, in order of process and id. So a function has the same number however much
  /// of the trace was read. An id without a record has a number behind theirs that follows from the id alone.
  explicit FunctionList(const reader::Trace& trace);

  /// Counts `calls` calls of `id` of a process; `process` is an index into Trace::processes(). `trace` outlives the
  /// list, and is the same each time.
  void add(const reader::Trace& trace, std::uint32_t process, std::uint32_t id, std::uint64_t calls);

  const std::vector<FunctionInfo>& functions() const { return functions_; }
  const std::vector<std::string>& modules() const { return modules_.texts; }
  const std::vector<std::string>& files() const { return files_.texts; }
  /// Whether the id has a number.
  bool has(std::uint32_t process, std::uint32_t id) const {
    return process < index_.size() && id < index_[process].size() && index_[process][id] != kNoFunction;
  }
  /// The function of an id that has one.
  std::uint32_t of(std::uint32_t process, std::uint32_t id) const { return index_[process][id]; }
  /// All of a process's, by id.
  const std::vector<std::uint32_t>& of_process(std::uint32_t process) const { return index_[process]; }

 private:
  /// What makes two functions the same; `name` is the trace's.
  struct Key {
    std::string_view name;
    std::int64_t module;
    std::int64_t file;
    std::uint32_t line;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  /// Texts under numbers.
  struct Texts {
    std::vector<std::string> texts;
    std::unordered_map<std::string_view, std::int64_t> known;  // the trace's own
    std::int64_t of(std::string_view text);
  };
  std::uint32_t number_of(const reader::Trace& trace, const reader::Process& process, std::uint32_t id);
  std::uint32_t stand_in(const reader::Trace& trace, const reader::Process& process, std::uint32_t id);

  std::vector<FunctionInfo> functions_;
  Texts modules_;
  Texts files_;
  std::unordered_map<Key, std::uint32_t, Hash> by_key_;
  std::vector<std::vector<std::uint32_t>> index_;
  std::optional<std::uint32_t> stand_ins_;  // where ids without a record begin, in a list of all functions
};

}  // namespace karst::analysis
