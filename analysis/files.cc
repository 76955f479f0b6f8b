// SPDX-License-Identifier: MIT
// Changes of all threads' descriptors are collected, put in order of time and applied; then each number has a history.
// What opens takes effect as its call ends, what closes as it begins: another thread may get the number in between.
#include "analysis/files.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "analysis/file_values.h"
#include "format/file.h"
#include "format/log.h"
#include "format/trace.h"

namespace karst::analysis {
namespace {

using format::NoteKind;

/// Calls that make descriptors without a path, and what those are called.
constexpr std::pair<std::string_view, const char*> kKindsOfDescriptors[] = {
    {"socket", "socket"},        {"epoll_create", "epoll"}, {"eventfd", "eventfd"}, {"timerfd_create", "timerfd"},
    {"inotify_init", "inotify"}, {"pidfd_open", "pidfd"},   {"tmpfile", "tmpfile"}};

std::optional<std::int64_t> integer_of(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, hex ? 16 : 10);
  if (read.ec != std::errc()) return {};
  return number;
}

/// A text as it is shown, without its quotes; empty if it is none. `cut`: it was too long.
std::string text_of(std::string_view shown, bool& cut) {
  cut = shown.ends_with("\"...");
  if (cut) shown.remove_suffix(3);
  if (shown.size() < 2 || shown.front() != '"' || shown.back() != '"') return {};
  return std::string(shown.substr(1, shown.size() - 2));
}

/// What a log of one text, behind `skip` bytes of numbers, says.
std::string_view log_text_behind(std::string_view bytes, std::size_t skip) {
  constexpr std::size_t kSize = sizeof format::kLogTextCut;
  if (bytes.size() < 1 + skip + kSize) return {};
  bytes.remove_prefix(1 + skip);
  const auto head =
      static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[0]) | static_cast<unsigned char>(bytes[1]) << 8);
  return (head & format::kLogTextCut) != 0 ? std::string_view() : bytes.substr(kSize, head);
}

}  // namespace

FileFunctions::FileFunctions(const reader::Process& process) : process_(process) {
  does_.resize(process.functions.size(), FileDoes::kNothing);
  for (std::size_t id = 0; id < does_.size(); ++id) {
    does_[id] = what_it_does(process.functions[id]);
    any_ |= does_[id] != FileDoes::kNothing;
  }
}

FileValuesOf::FileValuesOf(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls)
    : trace_(trace), thread_(thread), calls_(calls), values_(calls) {
  for (const reader::Note& note : calls.notes)
    if (note.is(NoteKind::kText) && note.row != reader::kNoParent) texts_.try_emplace(note.row, &note);
}

FileValues FileValuesOf::operator()(std::uint32_t row) const {
  FileValues of;
  const auto take_text = [&](std::string_view shown) {
    bool cut = false;
    of.path = text_of(shown, cut);
    if (!cut) return;
    const auto whole = texts_.find(row);
    if (whole != texts_.end()) of.path = calls_.bytes_of(*whole->second);
  };
  if (const reader::Note* note = values_.arguments(row))
    for (const Value& value : values_in(trace_, thread_, calls_, *note)) {
      if (value.name == "path" || value.name == "address" || value.name == "name" || value.name == "command")
        take_text(value.text);
      if (value.name == "fd") of.fd = integer_of(value.text);
      if (value.name == "to") of.to = integer_of(value.text);
      if (value.name == "from") of.from = integer_of(value.text);
      if (value.name == "dir") of.directory = integer_of(value.text);
      if (value.name == "first") of.first = integer_of(value.text);
      if (value.name == "last") of.last = integer_of(value.text);
      if (value.name == "flags") of.flags = integer_of(value.text);
      if (value.name == "size") of.size = integer_of(value.text);
      if (value.name == "count") of.count = integer_of(value.text);
    }
  if (const reader::Note* note = values_.returned(row))
    for (const Value& value : values_in(trace_, thread_, calls_, *note)) {
      if (value.name.empty()) {
        of.result = integer_of(value.text);
        if (value.text.starts_with("-1 ")) of.error = value.text.substr(3);
      }
      if ((value.name == "path" || value.name == "peer") && value.text.starts_with('"')) take_text(value.text);
      if (value.name == "read") of.read = integer_of(value.text);
      if (value.name == "write") of.write = integer_of(value.text);
    }
  return of;
}

/// One change. What a number means depends on what is done; kAbsent: it is not known.
struct Descriptors::Change {
  static constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();

  std::uint64_t ticks = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t process = 0;
  FileDoes does = FileDoes::kNothing;
  std::string_view function;  ///< empty: the process said so
  std::int64_t fd = kAbsent;  ///< the first of a range; the end of a pipe to read
  std::int64_t to = kAbsent;  ///< the last of a range; the end of a pipe to write; a directory
  std::int64_t result = kAbsent;
  std::string path;
};

Descriptors::Descriptors(const reader::Trace& trace) : trace_(trace), tables_(trace.processes().size()) {
  std::vector<Change> changes;
  reader::Calls calls;
  for (const reader::Process& process : trace.processes()) {
    const FileFunctions does(process);
    if (!does.any()) continue;
    collect_gaps(process, does);
    for (const reader::Thread& thread : process.threads) {
      calls = reader::rebuild_calls(trace, thread, std::move(calls));
      collect_gaps(thread, calls);
      collect_start(thread, calls, changes);
      collect(thread, calls, changes);
    }
  }
  for (Table& table : tables_) std::sort(table.gaps.begin(), table.gaps.end());
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.ticks < b.ticks; });
  for (const Change& change : changes) apply(change);
  for (Table& table : tables_) {
    for (auto& [fd, touched] : table.touched) {
      std::sort(touched.begins.begin(), touched.begins.end());
      std::sort(touched.ends.begin(), touched.ends.end());
    }
    table.of.clear();
    table.open.clear();
    table.closed.clear();
  }
  made_.clear();
  is_complete_ = true;
  // Once more: what was said later tells what paths began at, and what was duplicated.
  for (const Change& change : changes) apply(change);
}

/// Calls that were switched off, left out or lost may have changed any descriptor.
void Descriptors::collect_gaps(const reader::Process& process, const FileFunctions& does) {
  std::vector<std::uint64_t>& gaps = tables_[process.index].gaps;
  const auto changes = [&](std::uint32_t id) {
    return does.of(id) >= FileDoes::kOpens && does.of(id) <= FileDoes::kMoves;
  };
  bool all_recorded = process.min_duration_ticks == 0;
  const auto was_switched = [&](std::uint32_t id) {
    return std::any_of(process.switches.begin(), process.switches.end(), [id](const reader::Switch& change) {
      return change.first != 0 && id - change.first < change.count;
    });
  };
  // One that is off now was on until it was switched.
  for (const reader::Function& function : process.functions)
    if (function.filtered && changes(function.id) && !was_switched(function.id)) all_recorded = false;
  if (!all_recorded) gaps.push_back(std::numeric_limits<std::uint64_t>::max());
  for (const reader::Switch& change : process.switches) {
    bool concerned = change.first == 0;
    for (std::uint32_t id = change.first;
         !concerned && id - change.first < change.count && id < process.functions.size(); ++id)
      concerned = changes(id);
    if (concerned) gaps.push_back(change.on ? change.end_ticks : change.begin_ticks);
  }
}

void Descriptors::collect_gaps(const reader::Thread& thread, const reader::Calls& calls) {
  std::vector<std::uint64_t>& gaps = tables_[thread.process].gaps;
  if (thread.overwritten_events != 0) gaps.push_back(calls.first_ticks);
  if (thread.lost_events != 0 || calls.missing_blocks != 0) gaps.push_back(calls.last_ticks);
}

bool Descriptors::is_forgotten(const Table& table, std::uint64_t since, std::uint64_t ticks) {
  if (table.gaps.empty()) return false;
  if (table.gaps.back() == std::numeric_limits<std::uint64_t>::max()) return true;
  const auto at = std::upper_bound(table.gaps.begin(), table.gaps.end(), ticks);
  return at != table.gaps.begin() && since <= *(at - 1);
}

/// What the process said as it began, or as it was asked to record such calls. It says the directory first.
void Descriptors::collect_start(const reader::Thread& thread, const reader::Calls& calls,
                                std::vector<Change>& changes) {
  const reader::Process& process = trace_.processes()[thread.process];
  for (const reader::Note& note : calls.notes) {
    if (!note.is(NoteKind::kLog) || note.name == 0) continue;
    const std::string& format = trace_.function(process, note.name).name;
    const bool is_directory = format == format::kDirectoryIs;
    if (!is_directory && format != format::kDescriptorIs) continue;
    if (is_directory) tables_[thread.process].gaps.push_back(note.ticks - 1);
    const std::string_view bytes = calls.bytes_of(note);
    std::int64_t fd = kDirectory;
    if (!is_directory && bytes.size() > 4) {
      fd = 0;
      for (std::size_t i = 4; i > 0; --i) fd = fd << 8 | static_cast<unsigned char>(bytes[i]);
      fd = static_cast<std::int32_t>(fd);
    }
    Change change;
    change.ticks = change.begin = change.end = note.ticks;
    change.process = thread.process;
    change.does = FileDoes::kOpens;
    change.path = log_text_behind(bytes, is_directory ? 0 : 4);
    change.result = fd;
    if (!change.path.empty()) changes.push_back(std::move(change));
  }
}

void Descriptors::collect(const reader::Thread& thread, const reader::Calls& calls,
                          std::vector<Change>& changes) const {
  const reader::Process& process = trace_.processes()[thread.process];
  const FileFunctions does(process);
  const FileValuesOf values_of(trace_, thread, calls);
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const FileDoes what = does.of(calls.function[row]);
    if (what < FileDoes::kOpens || what > FileDoes::kMoves) continue;
    FileValues values = values_of(row);
    const bool closes = what == FileDoes::kCloses || what == FileDoes::kClosesRange;
    // One that has not returned may have made its descriptor another one already.
    const bool is_unsure = what == FileDoes::kDuplicates && !values.result && values.to;
    if (closes ? values.error == "EBADF" : !values.result && !is_unsure) continue;
    const bool fails = !closes && !is_unsure && *values.result < 0;
    if (fails && values.error != "EINPROGRESS") continue;
    constexpr std::int64_t kOnlyOnExec = 4;  // CLOSE_RANGE_CLOEXEC
    if (what == FileDoes::kClosesRange && (values.flags.value_or(0) & kOnlyOnExec) != 0) continue;
    Change change;
    change.begin = calls.begin[row];
    change.end = is_unsure ? std::numeric_limits<std::uint64_t>::max() : change.begin + calls.duration[row];
    change.ticks = closes || is_unsure ? change.begin : change.begin + calls.duration[row];
    change.process = thread.process;
    change.does = what;
    change.function = does.name(calls.function[row]);
    const auto or_absent = [](std::optional<std::int64_t> value) { return value.value_or(Change::kAbsent); };
    change.fd = or_absent(what == FileDoes::kClosesRange ? values.first
                          : what == FileDoes::kPipes     ? values.read
                                                         : values.fd);
    change.to = or_absent(what == FileDoes::kClosesRange ? values.last
                          : what == FileDoes::kPipes     ? values.write
                          : what == FileDoes::kOpens     ? values.directory
                                                         : values.to);
    change.result = or_absent(values.result);
    change.path = std::move(values.path);
    if (is_unsure) change.does = FileDoes::kCloses, change.fd = *values.to;
    changes.push_back(std::move(change));
  }
}

void Descriptors::apply(const Change& change) {
  const std::uint32_t process = change.process;
  const auto set_to = [&](std::int64_t fd, std::uint32_t file) {
    if (fd == Change::kAbsent) return;
    set(process, fd, change.ticks, file);
    if (!is_complete_) tables_[process].touched[fd].add(change.begin, change.end);
  };
  const auto known_then = [&](std::int64_t fd) { return known(process, fd, change.begin); };
  const std::string& path = change.path;
  switch (change.does) {
    case FileDoes::kOpens: {
      if (change.function == "freopen") set_to(change.fd, kGone);
      for (const auto& [function, kind] : kKindsOfDescriptors)
        if (change.function == function) return set_to(change.result, file_named(made(process, kind)));
      // One that is given a descriptor only changes its signals.
      if (change.function == "signalfd" && change.fd >= 0) return;
      if (change.function == "signalfd") return set_to(change.result, file_named(made(process, "signalfd")));
      if (change.function == "memfd_create") return set_to(change.result, file_named("memfd:" + path));
      if (change.function == "popen") return set_to(change.result, file_named("popen:" + path));
      if (change.function == "shm_open")
        return set_to(change.result, file_named("/dev/shm" + std::string(path.starts_with('/') ? "" : "/") + path));
      if (path.empty()) return set_to(change.result, kGone);
      if (change.function.empty()) return said(change);
      const std::int64_t directory = change.to == Change::kAbsent ? kDirectory : change.to;
      return set_to(change.result, file_named(resolved(process, path, directory, change.begin)));
    }
    case FileDoes::kCloses:
      return set_to(change.fd, kGone);
    case FileDoes::kClosesRange:
      return close_range(change);
    case FileDoes::kDuplicates:
      if (change.fd != Change::kAbsent && change.fd != change.to) set_to(change.result, known_then(change.fd));
      return;
    case FileDoes::kPipes: {
      const std::uint32_t file = file_named(made(process, change.function == "pipe" ? "pipe" : "pair of sockets"));
      set_to(change.fd, file);
      return set_to(change.to, file);
    }
    case FileDoes::kConnects:
    case FileDoes::kBinds:
      if (!path.empty()) set_to(change.fd, address(path, change.does == FileDoes::kBinds));
      return;
    case FileDoes::kAccepts:
      return set_to(change.result, file_named(path.empty() ? made(process, "accepted socket") : path));
    case FileDoes::kMoves:
      if (!path.empty()) return set_to(kDirectory, file_named(resolved(process, path, kDirectory, change.begin)));
      return set_to(kDirectory, change.fd != Change::kAbsent ? known_then(change.fd) : kGone);
    default:
      return;
  }
}

void Descriptors::close_range(const Change& change) {
  if (change.fd == Change::kAbsent || change.to == Change::kAbsent) return;
  Table& table = tables_[change.process];
  while (true) {
    const auto at = table.open.lower_bound(change.fd);
    if (at == table.open.end() || *at > change.to) break;
    const std::int64_t fd = *at;
    set(change.process, fd, change.ticks, kGone);
    if (!is_complete_) table.touched[fd].add(change.begin, change.end);
  }
  if (!is_complete_) table.all_closed.push_back({change.ticks, change.fd, change.to});
  // Also what the process has inherited and not touched. Most programs always close the same range.
  const auto covers = [&](const Range& range) { return range.first <= change.fd && change.to <= range.last; };
  if (std::none_of(table.closed.begin(), table.closed.end(), covers))
    table.closed.push_back({change.ticks, change.fd, change.to});
}

/// What a call did since the process began to say it is newer.
void Descriptors::said(const Change& change) {
  Table& table = tables_[change.process];
  if (!is_complete_) table.said[change.result].push_back({change.ticks, file_named(change.path)});
  const auto known = table.of.find(change.result);
  if (known == table.of.end() || is_forgotten(table, known->second.back().ticks, change.ticks))
    set(change.process, change.result, change.ticks, file_named(change.path));
}

void Descriptors::set(std::uint32_t process, std::int64_t fd, std::uint64_t ticks, std::uint32_t file) {
  Table& table = tables_[process];
  table.of[fd].push_back({ticks, file});
  if (fd < 0) return;
  if (file == kGone)
    table.open.erase(fd);
  else
    table.open.insert(fd);
}

std::uint32_t Descriptors::known(std::uint32_t process, std::int64_t fd, std::uint64_t ticks, bool closes) const {
  for (std::size_t depth = 0; depth <= tables_.size(); ++depth) {
    const Table& table = tables_[process];
    if (const auto found = table.of.find(fd); found != table.of.end()) {
      const std::vector<Was>& was = found->second;
      auto at =
          std::upper_bound(was.begin(), was.end(), ticks, [](std::uint64_t t, const Was& w) { return t < w.ticks; });
      while (at != was.begin()) {
        --at;
        if (closes && at->ticks == ticks && at->file == kGone) continue;
        return is_forgotten(table, at->ticks, ticks) ? known_later(table, fd, ticks) : at->file;
      }
    }
    for (const Range& range : table.closed)
      if (range.ticks <= ticks && range.first <= fd && fd <= range.last) return kGone;
    if (const std::uint32_t later = known_later(table, fd, ticks); later != kGone) return later;
    if (is_forgotten(table, 0, ticks)) return kGone;
    const reader::Process& of = trace_.processes()[process];
    if (of.parent == 0 || (of.flags & format::kProcessForked) == 0) return kGone;
    ticks = std::min(ticks, of.start_ticks);
    process = of.parent - 1;
    closes = false;
  }
  return kGone;
}

std::uint32_t Descriptors::known_later(const Table& table, std::int64_t fd, std::uint64_t ticks) const {
  const auto found = table.said.find(fd);
  if (!is_complete_ || found == table.said.end()) return kGone;
  const auto said = std::upper_bound(found->second.begin(), found->second.end(), ticks,
                                     [](std::uint64_t t, const Was& w) { return t < w.ticks; });
  if (said == found->second.end() || is_forgotten(table, ticks, said->ticks)) return kGone;
  // A call's change is made between its begin and its end, and so may what was said have been.
  if (const auto calls = table.touched.find(fd); calls != table.touched.end()) {
    const auto& [begins, ends] = calls->second;
    const auto begun = std::upper_bound(begins.begin(), begins.end(), said->ticks) - begins.begin();
    const auto ended = std::lower_bound(ends.begin(), ends.end(), ticks) - ends.begin();
    if (begun > ended) return kGone;
  }
  for (const Range& range : table.all_closed)
    if (ticks <= range.ticks && range.ticks <= said->ticks && range.first <= fd && fd <= range.last) return kGone;
  return said->file;
}

std::uint32_t Descriptors::file_of(std::uint32_t process, std::int64_t fd, std::uint64_t ticks, bool closes) {
  const std::uint32_t file = known(process, fd, ticks, closes);
  if (file != kGone) return file;
  const std::uint32_t pid = trace_.processes()[process].pid;
  if (fd == kNone) return file_named("no descriptor, or none that is known, of process " + std::to_string(pid));
  return file_named("descriptor " + std::to_string(fd) + " of process " + std::to_string(pid) + ", not known");
}

std::uint32_t Descriptors::path_of(std::uint32_t process, std::string_view path, std::int64_t directory,
                                   std::uint64_t ticks) {
  return file_named(resolved(process, path, directory, ticks));
}

std::string Descriptors::resolved(std::uint32_t process, std::string_view path, std::int64_t directory,
                                  std::uint64_t ticks) const {
  const auto drop = [&](std::string_view what) {
    return path.starts_with(what) ? (path.remove_prefix(what.size()), true) : false;
  };
  if (path.starts_with('/')) return std::string(path);
  while (drop("./"))
    while (drop("/")) continue;
  const std::uint32_t in = known(process, directory, ticks);
  if (in == kGone || !names_[in].starts_with('/')) {
    // Another directory than that of other relative paths, perhaps.
    if (directory == kDirectory) return std::string(path);
    return "(descriptor " + std::to_string(directory) + ", not known)/" + std::string(path);
  }
  if (path.empty() || path == ".") return names_[in];
  return names_[in] + (names_[in].ends_with('/') ? "" : "/") + std::string(path);
}

std::uint32_t Descriptors::file_named(std::string name) {
  const auto [at, is_new] = by_name_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(std::move(name));
  return at->second;
}

std::string Descriptors::made(std::uint32_t process, const char* what) {
  const std::uint32_t number = ++made_[{process, what}];
  return std::string(what) + " " + std::to_string(number) + " of process " +
         std::to_string(trace_.processes()[process].pid);
}

}  // namespace karst::analysis
