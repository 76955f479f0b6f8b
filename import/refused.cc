// SPDX-License-Identifier: MIT
#include "import/refused.h"

namespace karst::importing {
namespace {

constexpr std::size_t kRefusedLook = std::size_t{4} << 10;

/// A line of the file's beginning starts so.
bool has_line(std::string_view bytes, std::string_view start) {
  bytes = bytes.substr(0, kRefusedLook);
  for (;;) {
    if (bytes.starts_with(start)) return true;
    const auto end = bytes.find('\n');
    if (end == std::string_view::npos) return false;
    bytes.remove_prefix(end + 1);
  }
}

bool is_callgrind(std::string_view bytes) {
  if (bytes.starts_with("# callgrind format\n")) return true;
  const bool begins = bytes.starts_with("version:") || bytes.starts_with("creator:") || bytes.starts_with("events:");
  return begins && has_line(bytes, "events:");
}

}  // namespace

std::optional<std::string_view> why_refused(std::string_view bytes) {
  if (bytes.starts_with("PERFILE2") || bytes.starts_with("2ELIFREP"))
    return "it is perf's own file, which perf alone can read. Import its text: 'perf script --header -F "
           "comm,pid,tid,time,period,event,ip,sym,dso -i FILE > samples.txt'";
  if (is_callgrind(bytes))
    return "a profile of callgrind has sums, and no times of calls. The other way round works: 'karst export --to "
           "callgrind' writes such a profile of a trace";
  if (bytes.starts_with("gmon"))
    return "a file of gprof has sums, and no times of calls. 'karst run --sample 1000' records samples with stacks, "
           "and "
           "'karst report' has the times and counts of gprof's tables";
  if (bytes.starts_with("name") && bytes.substr(0, bytes.find('\n')).find("total_ns") != std::string_view::npos &&
      bytes.substr(0, bytes.find('\n')).find("src_file") != std::string_view::npos)
    return "it has sums of Tracy's zones, and no times of each: 'tracy-csvexport -u' writes those";
  return std::nullopt;
}

}  // namespace karst::importing
