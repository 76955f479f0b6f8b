// SPDX-License-Identifier: MIT
// What `tracy-csvexport -u` writes: a line for each zone of Tracy's, with its begin and its length. Zones are sorted by
// their place in the source, so nesting comes of their times.
//
// Its fields have no quotes: a name may have the separator in it. A line is therefore split where four numbers stand
// side by side. The separator is the one of the first line.
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/event.h"
#include "import/import.h"
#include "import/text.h"

namespace karst::importing {
namespace {

constexpr std::string_view kFirstColumn = "name";
constexpr std::string_view kSecondColumn = "src_file";
constexpr std::size_t kMostSeparator = 8;
constexpr std::uint32_t kMostThreads = 1U << 16U;  // Tracy's own numbers of threads have 16 bits

/// What stands between the fields of a file. None: its first line is another one.
std::optional<std::string_view> separator_in(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  if (!line.starts_with(kFirstColumn)) return std::nullopt;
  const auto second = line.find(kSecondColumn);
  if (second == std::string_view::npos || second == kFirstColumn.size()) return std::nullopt;
  const std::string_view separator = line.substr(kFirstColumn.size(), second - kFirstColumn.size());
  if (separator.size() > kMostSeparator) return std::nullopt;
  std::string header;
  for (const char* column : {"name", "src_file", "src_line", "ns_since_start", "exec_time_ns", "thread"})
    header += (header.empty() ? std::string() : std::string(separator)) + column;
  return line.starts_with(header) ? std::optional(separator) : std::nullopt;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                                   : std::nullopt;
}

/// One line's zone.
struct Zone {
  std::string_view name;
  std::string_view file;
  std::int64_t line = 0;
  std::int64_t begin_ns = 0;
  std::int64_t length_ns = 0;
  std::int64_t thread = 0;
};

/// None: the line is no zone's.
std::optional<Zone> zone_in(std::string_view line, std::string_view separator) {
  std::vector<std::size_t> begins{0};  // of fields
  for (std::size_t at = line.find(separator); at != std::string_view::npos; at = line.find(separator, at))
    begins.push_back(at += separator.size());
  const auto field = [&](std::size_t i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1] - separator.size() : line.size();
    return line.substr(begins[i], end - begins[i]);
  };
  constexpr std::size_t kNumbers = 4;
  for (std::size_t i = 2; i + kNumbers <= begins.size(); ++i) {
    const auto source_line = number_in(field(i));
    const auto begin = number_in(field(i + 1));
    const auto length = number_in(field(i + 2));
    const auto thread = number_in(field(i + 3));
    if (!source_line || !begin || !length || !thread) continue;
    const std::string_view name = line.substr(0, begins[i - 1] - separator.size());
    return Zone{name, field(i - 1), *source_line, *begin, *length, *thread};
  }
  return std::nullopt;
}

class TracyReader {
 public:
  explicit TracyReader(std::string_view separator) : separator_(separator) {}

  void add_line(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) return;
    const auto zone = zone_in(line, separator_);
    if (!zone) return leave_out("lines that are no zones, as values of plots");
    if (zone->thread < 0 || zone->thread >= kMostThreads) return leave_out("zones of no thread that can be");
    if (zone->begin_ns > kLatestNs || zone->begin_ns < -kLatestNs || zone->length_ns < 0 ||
        zone->length_ns > kLatestNs - zone->begin_ns)
      return leave_out("zones without a time that can be");
    const auto function = function_of(*zone);
    if (!function) return leave_out("zones of names beyond 8 million");
    thread_of(static_cast<std::uint32_t>(zone->thread))
        .calls.push_back({{zone->begin_ns, 0}, {zone->begin_ns + zone->length_ns, 0}, *function, 0});
  }

  ForeignTrace take() {
    trace_.processes.push_back(std::move(process_));
    return std::move(trace_);
  }

 private:
  void leave_out(const char* what) { ++trace_.left_out[what]; }

  std::optional<std::uint32_t> function_of(const Zone& zone) {
    const std::string_view name = zone.name.empty() ? "(no name)" : cut(zone.name, kMostName);
    const bool has_line = zone.line > 0 && zone.line <= UINT32_MAX;
    std::string key(name);
    key.append(1, '\0').append(zone.file).append(1, '\0').append(std::to_string(zone.line));
    if (const auto found = functions_.find(key); found != functions_.end()) return found->second;
    if (process_.functions.size() + 1 >= format::kMaxFunctionId) return std::nullopt;
    Function& made = process_.functions.emplace_back();
    made.name = name;
    made.file = cut(zone.file, kMostName);
    made.line = has_line ? static_cast<std::uint32_t>(zone.line) : 0;
    return functions_[key] = static_cast<std::uint32_t>(process_.functions.size() - 1);
  }

  Thread& thread_of(std::uint32_t number) {
    const auto [found, is_new] = threads_.try_emplace(number, process_.threads.size());
    if (is_new) {
      Thread& made = process_.threads.emplace_back();
      made.tid = kFirstMadeId + number;
      made.name = "thread " + std::to_string(number);
    }
    return process_.threads[found->second];
  }

  std::string_view separator_;
  Process process_;
  Numbers functions_;
  std::map<std::uint32_t, std::size_t> threads_;
  ForeignTrace trace_;
};

}  // namespace

bool may_be_tracy(std::string_view bytes) { return separator_in(bytes).has_value(); }

Result<ForeignTrace> import_tracy(std::string_view bytes) {
  const auto separator = separator_in(bytes);
  if (!separator) return Error{"its first line is not that of 'tracy-csvexport -u'"};
  TracyReader reader(*separator);
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    bytes.remove_prefix(end + 1);
    reader.add_line(bytes.substr(0, bytes.find('\n')));
  }
  return reader.take();
}

}  // namespace karst::importing
