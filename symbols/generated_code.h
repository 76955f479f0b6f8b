// Names of a process's generated code, for whom they are looked up: the files are read as they grow.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "reader/model.h"
#include "symbols/perf_map.h"

namespace karst::symbols {

/// Any thread may use it.
class GeneratedCode {
 public:
  struct Name {
    std::string name;       ///< demangled
    std::string link_name;  ///< as the program wrote it
  };

  /// The name of what the process has at a run-time address, from the file that it keeps for perf
  /// (symbols/perf_map.h); of a forked child, its parent's if its own does not know. Where code took another's place
  /// the later one is named. Empty names when there is none; `why` then says it if a file could not be read.
  Name find(const reader::Process& process, std::uint64_t address, std::string& why);

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, PerfMap> maps_;  // by process number
};

}  // namespace karst::symbols
