#include "symbols/generated_code.h"

#include "format/trace.h"
#include "symbols/demangle.h"

namespace karst::symbols {

GeneratedCode::Name GeneratedCode::find(const reader::Process& process, std::uint64_t address, std::string& why) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t parent = (process.flags & format::kProcessForked) != 0 ? process.parent_pid : 0;
  for (const std::uint32_t pid : {process.pid, parent}) {
    if (pid == 0) continue;
    PerfMap& map = maps_[pid];
    // Code that was known may have given way to other code since: the file is looked at each time.
    if (const Status read = map.read(PerfMap::path_of(pid)); !read && why.empty()) why = read.error().message;
    if (const auto piece = map.lookup(address)) {
      why.clear();
      std::string name(piece->name);
      return {demangle(name.c_str()), name};
    }
  }
  return {};
}

}  // namespace karst::symbols
