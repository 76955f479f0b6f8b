// SPDX-License-Identifier: MIT
// The values of files' functions, read once for analysis/files.cc and analysis/file_calls.cc.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/files.h"
#include "analysis/values.h"
#include "reader/trace.h"

namespace karst::analysis {

/// A call as its values have it.
struct FileValues {
  std::optional<std::int64_t> fd, to, from, directory, first, last, flags, read, write, size, count, result;
  std::string path;   ///< or an address: as shown, without quotes; empty: it has none, or that is not known
  std::string error;  ///< "EAGAIN"
};

/// What each function of a process does.
class FileFunctions {
 public:
  explicit FileFunctions(const reader::Process& process);
  bool any() const { return any_; }
  std::string_view name(std::uint32_t function) const { return process_.functions[function].name; }
  FileDoes of(std::uint32_t function) const { return function < does_.size() ? does_[function] : FileDoes::kNothing; }

 private:
  const reader::Process& process_;
  std::vector<FileDoes> does_;
  bool any_ = false;
};

/// Of one thread's calls, which must outlive it.
class FileValuesOf {
 public:
  FileValuesOf(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls);
  FileValues operator()(std::uint32_t row) const;

 private:
  const reader::Trace& trace_;
  const reader::Thread& thread_;
  const reader::Calls& calls_;
  const CallValues values_;
  std::unordered_map<std::uint32_t, const reader::Note*> texts_;  // by row: paths that are too long for a value
};

}  // namespace karst::analysis
