// SPDX-License-Identifier: MIT
// Calls of files' functions, and their sums. What they were about is analysis/files.cc's to say.
#include <algorithm>
#include <array>
#include <tuple>

#include "analysis/file_values.h"
#include "analysis/files.h"
#include "columns/selection.h"

namespace karst::analysis {
namespace {

struct KnownFunctions {
  FileDoes does;
  std::array<std::string_view, 32> names;
};
constexpr KnownFunctions kKnownFunctions[] = {
    {FileDoes::kReads,
     {"read", "pread", "readv", "preadv", "fread", "fgets", "getline", "recv", "recvfrom", "recvmsg"}},
    {FileDoes::kWrites,
     {"write", "pwrite", "writev", "pwritev", "fwrite", "fputs", "printf", "fprintf", "dprintf", "puts", "send",
      "sendto", "sendmsg"}},
    {FileDoes::kOther,
     {"recvmmsg",      "sendmmsg", "fflush",    "fscanf",          "epoll_ctl", "epoll_wait", "eventfd_read",
      "eventfd_write", "fsync",    "fdatasync", "sync_file_range", "ftruncate", "stat",       "lstat",
      "fstat",         "fstatat",  "access",    "faccessat",       "rename",    "renameat",   "unlink",
      "unlinkat",      "truncate", "listen",    "shutdown"}},
    {FileDoes::kCopies, {"sendfile", "splice", "copy_file_range"}},
    {FileDoes::kOpens,
     {"open", "openat", "fopen", "freopen", "mkstemp", "memfd_create", "opendir", "popen", "tmpfile", "shm_open",
      "eventfd", "timerfd_create", "signalfd", "inotify_init", "pidfd_open", "epoll_create", "socket"}},
    {FileDoes::kCloses, {"close", "fclose", "closedir", "pclose"}},
    {FileDoes::kClosesRange, {"close_range"}},
    {FileDoes::kDuplicates, {"dup", "dup2"}},
    {FileDoes::kPipes, {"pipe", "socketpair"}},
    {FileDoes::kConnects, {"connect"}},
    {FileDoes::kBinds, {"bind"}},
    {FileDoes::kAccepts, {"accept"}},
    {FileDoes::kMoves, {"chdir", "fchdir"}},
    {FileDoes::kLoads, {"dlopen"}},
};

constexpr std::string_view kResult = "|:r8";  // ours alone have such a value

std::uint64_t bytes_of(const FileValues& values) {
  if (!values.result || *values.result <= 0) return 0;
  const auto items = static_cast<std::uint64_t>(*values.result);
  return values.count ? items * static_cast<std::uint64_t>(values.size.value_or(1)) : items;
}

/// What it is given is no path, but becomes a part of its descriptor's name.
bool has_no_path(std::string_view function) {
  return function == "memfd_create" || function == "shm_open" || function == "popen";
}

/// What a call is about. What it makes is known by its descriptor, at the call's end.
std::uint32_t file_of(Descriptors& descriptors, std::uint32_t process, std::string_view function, FileDoes does,
                      const FileValues& values, std::uint64_t begin, std::uint64_t end) {
  const auto made = [&](std::optional<std::int64_t> fd) {
    return descriptors.file_of(process, fd && *fd >= 0 ? *fd : Descriptors::kNone, end);
  };
  const std::int64_t fd = (does == FileDoes::kCopies ? values.from : values.fd).value_or(Descriptors::kNone);
  switch (does) {
    case FileDoes::kPipes:
      return made(values.read);
    case FileDoes::kOpens:
      if (values.path.empty() || has_no_path(function)) return made(values.result);
      break;
    case FileDoes::kConnects:
    case FileDoes::kBinds:
      if (!values.path.empty()) return descriptors.address(values.path, does == FileDoes::kBinds);
      return descriptors.file_of(process, fd, begin);
    case FileDoes::kAccepts:
      return descriptors.file_of(process, fd, begin);
    case FileDoes::kLoads:
      if (values.path.find('/') != std::string::npos) break;
      return descriptors.name_of(values.path.empty() ? "(the program itself)" : values.path);
    case FileDoes::kCloses:
      return descriptors.file_of(process, fd, begin, true);
    default:
      break;
  }
  if (values.path.empty() || does == FileDoes::kReads) return descriptors.file_of(process, fd, begin);
  return descriptors.path_of(process, values.path, values.directory.value_or(Descriptors::kDirectory), begin);
}

}  // namespace

FileDoes what_it_does(const reader::Function& function) {
  if (!function.note || function.name.empty() || function.values.find(kResult) == std::string::npos)
    return FileDoes::kNothing;
  for (const KnownFunctions& known : kKnownFunctions)
    if (std::find(known.names.begin(), known.names.end(), function.name) != known.names.end()) return known.does;
  return FileDoes::kNothing;
}

std::vector<FileCall> file_calls(const reader::Trace& trace, Descriptors& descriptors, const reader::Thread& thread,
                                 const reader::Calls& calls, const FunctionSet* functions) {
  std::vector<FileCall> found;
  const FileFunctions does(trace.processes()[thread.process]);
  if (!does.any()) return found;
  const FileValuesOf values_of(trace, thread, calls);
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const FileDoes what = does.of(calls.function[row]);
    if (what == FileDoes::kNothing || !columns::is_counted(calls.marks[row])) continue;
    std::uint32_t parent = calls.parent[row];
    while (parent != reader::kNoParent && does.of(calls.function[parent]) != FileDoes::kNothing)
      parent = calls.parent[parent];
    FileCall call;
    if (parent != reader::kNoParent) call.caller = calls.function[parent];
    if (functions != nullptr && !functions->contains(thread.process, call.caller)) continue;
    const FileValues values = values_of(row);
    call.thread = &thread;
    call.zone = calls.function[row];
    call.begin = calls.begin[row];
    call.duration = calls.time(row);
    call.open = reader::call_is_open(calls.marks[row]);
    call.result = values.result;
    call.error = values.error;
    call.fd = what == FileDoes::kCopies ? values.from : values.fd;
    call.file = file_of(descriptors, thread.process, does.name(call.zone), what, values, call.begin,
                        call.begin + calls.duration[row]);
    const std::uint64_t bytes = bytes_of(values);
    if (what == FileDoes::kReads || what == FileDoes::kCopies) call.read = bytes;
    if (what == FileDoes::kWrites) call.written = bytes;
    found.push_back(call);
    if (what != FileDoes::kCopies) continue;
    call.fd = values.to;
    call.file = descriptors.file_of(thread.process, values.to.value_or(Descriptors::kNone), call.begin);
    call.read = 0;
    call.written = bytes;
    call.duration = 0;
    found.push_back(std::move(call));
  }
  return found;
}

void FileSums::add(const FileCall& call) {
  ++calls;
  errors += call.error.empty() ? 0 : 1;
  read += call.read;
  written += call.written;
  total += call.duration;
  longest = std::max(longest, call.duration);
}

std::string_view FileGroups::name(const FileCall& call, std::uint32_t function) const {
  if (function == 0) return {};
  return trace_.function(trace_.processes()[call.thread->process], function).name;
}

void FileGroups::add(const FileCall& call) {
  const std::string_view caller = name(call, call.caller), zone = name(call, call.zone);
  auto& [group, uses] = by_function_ ? groups_[{0, caller}] : groups_[{call.file, {}}];
  group.file = call.file;
  group.process = call.thread->process;
  group.caller = call.caller;
  if (group.sums.calls == 0 || call.duration > group.sums.longest) group.longest_call = zone;
  group.sums.add(call);
  FileUse& use = uses[{caller, zone, by_function_ ? call.file : 0}];
  use.process = call.thread->process;
  use.zone = call.zone;
  use.caller = call.caller;
  use.file = call.file;
  use.sums.add(call);
}

std::vector<FileGroup> FileGroups::sorted() const {
  const auto longer = [](const auto& a, const auto& b) { return a.sums.total > b.sums.total; };
  std::vector<FileGroup> all;
  for (const auto& [key, of] : groups_) {
    FileGroup& group = all.emplace_back(of.sums);
    for (const auto& [by, use] : of.uses) group.uses.push_back(use);
    std::stable_sort(group.uses.begin(), group.uses.end(), longer);
  }
  std::stable_sort(all.begin(), all.end(), longer);
  return all;
}

}  // namespace karst::analysis
