// Calls of files' functions, and their sums. What they were about is analysis/files.cc's to say.
#include <algorithm>
#include <array>
#include <tuple>

#include "analysis/file_values.h"
#include "analysis/files.h"
#include "query/selection.h"

namespace karst::analysis {
namespace {

struct KnownFunction {
  std::string_view name;
  FileDoes does;
};
constexpr std::array kKnownFunctions{
    KnownFunction{"read", FileDoes::kReads},          KnownFunction{"write", FileDoes::kWrites},
    KnownFunction{"pread", FileDoes::kReads},         KnownFunction{"pwrite", FileDoes::kWrites},
    KnownFunction{"readv", FileDoes::kReads},         KnownFunction{"writev", FileDoes::kWrites},
    KnownFunction{"preadv", FileDoes::kReads},        KnownFunction{"pwritev", FileDoes::kWrites},
    KnownFunction{"fread", FileDoes::kReads},         KnownFunction{"fwrite", FileDoes::kWrites},
    KnownFunction{"fgets", FileDoes::kReads},         KnownFunction{"fputs", FileDoes::kWrites},
    KnownFunction{"getline", FileDoes::kReads},       KnownFunction{"printf", FileDoes::kWrites},
    KnownFunction{"fprintf", FileDoes::kWrites},      KnownFunction{"dprintf", FileDoes::kWrites},
    KnownFunction{"puts", FileDoes::kWrites},         KnownFunction{"recv", FileDoes::kReads},
    KnownFunction{"recvfrom", FileDoes::kReads},      KnownFunction{"recvmsg", FileDoes::kReads},
    KnownFunction{"send", FileDoes::kWrites},         KnownFunction{"sendto", FileDoes::kWrites},
    KnownFunction{"sendmsg", FileDoes::kWrites},      KnownFunction{"recvmmsg", FileDoes::kOther},
    KnownFunction{"sendmmsg", FileDoes::kOther},      KnownFunction{"sendfile", FileDoes::kCopies},
    KnownFunction{"splice", FileDoes::kCopies},       KnownFunction{"copy_file_range", FileDoes::kCopies},
    KnownFunction{"open", FileDoes::kOpens},          KnownFunction{"openat", FileDoes::kOpens},
    KnownFunction{"fopen", FileDoes::kOpens},         KnownFunction{"freopen", FileDoes::kOpens},
    KnownFunction{"mkstemp", FileDoes::kOpens},       KnownFunction{"memfd_create", FileDoes::kOpens},
    KnownFunction{"opendir", FileDoes::kOpens},       KnownFunction{"popen", FileDoes::kOpens},
    KnownFunction{"tmpfile", FileDoes::kOpens},       KnownFunction{"shm_open", FileDoes::kOpens},
    KnownFunction{"eventfd", FileDoes::kOpens},       KnownFunction{"timerfd_create", FileDoes::kOpens},
    KnownFunction{"signalfd", FileDoes::kOpens},      KnownFunction{"inotify_init", FileDoes::kOpens},
    KnownFunction{"pidfd_open", FileDoes::kOpens},    KnownFunction{"epoll_create", FileDoes::kOpens},
    KnownFunction{"socket", FileDoes::kOpens},        KnownFunction{"close", FileDoes::kCloses},
    KnownFunction{"fclose", FileDoes::kCloses},       KnownFunction{"closedir", FileDoes::kCloses},
    KnownFunction{"pclose", FileDoes::kCloses},       KnownFunction{"close_range", FileDoes::kClosesRange},
    KnownFunction{"dup", FileDoes::kDuplicates},      KnownFunction{"dup2", FileDoes::kDuplicates},
    KnownFunction{"pipe", FileDoes::kPipes},          KnownFunction{"socketpair", FileDoes::kPipes},
    KnownFunction{"connect", FileDoes::kConnects},    KnownFunction{"bind", FileDoes::kBinds},
    KnownFunction{"accept", FileDoes::kAccepts},      KnownFunction{"chdir", FileDoes::kMoves},
    KnownFunction{"fchdir", FileDoes::kMoves},        KnownFunction{"fflush", FileDoes::kOther},
    KnownFunction{"fscanf", FileDoes::kOther},        KnownFunction{"epoll_ctl", FileDoes::kOther},
    KnownFunction{"epoll_wait", FileDoes::kOther},    KnownFunction{"eventfd_read", FileDoes::kOther},
    KnownFunction{"eventfd_write", FileDoes::kOther}, KnownFunction{"fsync", FileDoes::kOther},
    KnownFunction{"fdatasync", FileDoes::kOther},     KnownFunction{"sync_file_range", FileDoes::kOther},
    KnownFunction{"ftruncate", FileDoes::kOther},     KnownFunction{"stat", FileDoes::kOther},
    KnownFunction{"lstat", FileDoes::kOther},         KnownFunction{"fstat", FileDoes::kOther},
    KnownFunction{"fstatat", FileDoes::kOther},       KnownFunction{"access", FileDoes::kOther},
    KnownFunction{"faccessat", FileDoes::kOther},     KnownFunction{"rename", FileDoes::kOther},
    KnownFunction{"renameat", FileDoes::kOther},      KnownFunction{"unlink", FileDoes::kOther},
    KnownFunction{"unlinkat", FileDoes::kOther},      KnownFunction{"truncate", FileDoes::kOther},
    KnownFunction{"listen", FileDoes::kOther},        KnownFunction{"shutdown", FileDoes::kOther}};

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
  if (!function.note || function.values.find(kResult) == std::string::npos) return FileDoes::kNothing;
  for (const KnownFunction& known : kKnownFunctions)
    if (known.name == function.name) return known.does;
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
    if (what == FileDoes::kNothing || !query::is_counted(calls.marks[row])) continue;
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
