// SPDX-License-Identifier: MIT
// What threads asked of files, sockets and pipes: zones named after functions (format/file.h), whose arguments say
// which descriptor it was, and what a descriptor was at that time.
//
// Descriptors says what is behind a number by what all threads of a process opened, duplicated and closed, in order of
// time. A forked child begins with its parent's. What was open before is known as far as the process said so: when it
// began, or began to record such calls, and now and then as its first calls are overwritten. What it says holds before
// as well, as far back as no call changed the descriptor and none is missing. Everything else is not known, and is not
// guessed: also what calls may have changed that are missing.
//
//   file   what calls are counted by: a path, the other end of a socket, a pipe, or a descriptor that is not known
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/selection.h"
#include "format/file.h"
#include "reader/trace.h"

namespace karst::analysis {

/// What a call does to descriptors, and where its bytes go.
enum class FileDoes : std::uint8_t {
  kNothing,  ///< the function is none of these
  kOpens,
  kCloses,
  kClosesRange,
  kDuplicates,
  kPipes,
  kConnects,
  kBinds,
  kAccepts,
  kMoves,  ///< to another working directory
  kReads,
  kWrites,
  kCopies,  ///< from one descriptor to another
  kLoads,   ///< a library, perhaps by a name without a path
  kOther,
};

FileDoes what_it_does(const reader::Function& function);

class FileFunctions;

class Descriptors {
 public:
  static constexpr std::int64_t kDirectory = -100;  ///< stands for the working directory, as AT_FDCWD
  static constexpr std::int64_t kNone = -1;         ///< stands for a descriptor whose number is not known

  /// Rebuilds all calls of all threads, as a filter would make descriptors wrong.
  explicit Descriptors(const reader::Trace& trace);

  std::size_t size() const { return names_.size(); }
  const std::string& name(std::uint32_t file) const { return names_[file]; }
  /// What a descriptor is at that time; `closes`: for a call that begins then and closes it.
  std::uint32_t file_of(std::uint32_t process, std::int64_t fd, std::uint64_t ticks, bool closes = false);
  /// The other end of a socket, or its own.
  std::uint32_t address(const std::string& address, bool own) {
    return file_named(own ? std::string(kOwn) + address : address);
  }
  /// What is no path, and nobody's descriptor.
  std::uint32_t name_of(std::string name) { return file_named(std::move(name)); }
  /// What a path means at that time: relative ones begin at `directory`.
  std::uint32_t path_of(std::uint32_t process, std::string_view path, std::int64_t directory, std::uint64_t ticks);

 private:
  struct Was {
    std::uint64_t ticks;
    std::uint32_t file;  // kGone: it was closed
  };
  struct Range {
    std::uint64_t ticks;
    std::int64_t first, last;
  };
  /// When calls that change one descriptor began and ended; in order once all are known.
  struct Touched {
    std::vector<std::uint64_t> begins, ends;
    void add(std::uint64_t begin, std::uint64_t end) {
      begins.push_back(begin);
      ends.push_back(end);
    }
  };
  struct Table {
    std::unordered_map<std::int64_t, std::vector<Was>> of;    // by number, in order of time
    std::unordered_map<std::int64_t, std::vector<Was>> said;  // by the process itself, in order of time
    std::unordered_map<std::int64_t, Touched> touched;        // by calls
    std::set<std::int64_t> open;                              // numbers that are something known, so far
    std::vector<Range> closed;
    std::vector<Range> all_closed;
    std::vector<std::uint64_t> gaps;  // ticks at which calls are missing: what was known before is not any more
  };
  struct Change;
  static constexpr std::uint32_t kGone = 0xffffffffU;
  static constexpr const char* kOwn = format::kSocketAt;

  void collect_gaps(const reader::Process& process, const FileFunctions& does);
  void collect_gaps(const reader::Thread& thread, const reader::Calls& calls);
  /// What is known since then may not be true any more.
  static bool is_forgotten(const Table& table, std::uint64_t since, std::uint64_t ticks);
  void collect(const reader::Thread& thread, const reader::Calls& calls, std::vector<Change>& changes) const;
  void collect_start(const reader::Thread& thread, const reader::Calls& calls, std::vector<Change>& changes);
  void apply(const Change& change);
  void close_range(const Change& change);
  void said(const Change& change);
  void set(std::uint32_t process, std::int64_t fd, std::uint64_t ticks, std::uint32_t file);
  std::string resolved(std::uint32_t process, std::string_view path, std::int64_t directory, std::uint64_t ticks) const;
  /// kGone: not known.
  std::uint32_t known(std::uint32_t process, std::int64_t fd, std::uint64_t ticks, bool closes = false) const;
  /// By what the process said later. kGone: not known.
  std::uint32_t known_later(const Table& table, std::int64_t fd, std::uint64_t ticks) const;
  std::uint32_t file_named(std::string name);
  std::string made(std::uint32_t process, const char* what);

  const reader::Trace& trace_;
  std::vector<Table> tables_;  // by process
  bool is_complete_ = false;   // all changes were applied
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> made_;  // how many pipes and sockets so far
};

struct FileCall {
  const reader::Thread* thread = nullptr;
  std::uint32_t zone = 0;    ///< function of the call
  std::uint32_t caller = 0;  ///< function that made it; 0: no traced one
  std::uint32_t file = 0;    ///< of Descriptors
  std::uint64_t begin = 0, duration = 0;
  std::uint64_t read = 0, written = 0;  ///< bytes
  bool open = false;                    ///< its end, or its begin, is not known
  std::optional<std::int64_t> fd, result;
  std::string error;  ///< "EAGAIN"; empty: it did not fail, or that is not known
};

/// Such calls among a thread's; of callers among `functions`, if that is not null. What copies from one descriptor to
/// another is two: the second with what was written, and no time.
std::vector<FileCall> file_calls(const reader::Trace& trace, Descriptors& descriptors, const reader::Thread& thread,
                                 const reader::Calls& calls, const FunctionSet* functions);

struct FileSums {
  std::uint64_t calls = 0, errors = 0, read = 0, written = 0, total = 0, longest = 0;  ///< bytes, ticks
  void add(const FileCall& call);
};
/// Calls of one kind by one function.
struct FileUse {
  std::uint32_t process = 0;
  std::uint32_t zone = 0, caller = 0;  ///< functions
  std::uint32_t file = 0;
  FileSums sums;
};
/// Calls to one file, or by one function.
struct FileGroup {
  std::uint32_t file = 0;
  std::uint32_t process = 0, caller = 0;  ///< by function
  FileSums sums;
  std::string_view longest_call;  ///< name of its function
  std::vector<FileUse> uses;      ///< by falling total
};
/// Adds calls up, by file or by function; functions of one name are one. Names are borrowed.
class FileGroups {
 public:
  FileGroups(const reader::Trace& trace, bool by_function) : trace_(trace), by_function_(by_function) {}
  void add(const FileCall& call);
  bool empty() const { return groups_.empty(); }
  /// By falling total.
  std::vector<FileGroup> sorted() const;

 private:
  using UseKey = std::tuple<std::string_view, std::string_view, std::uint32_t>;  // caller, call, file
  struct Group {
    FileGroup sums;
    std::map<UseKey, FileUse> uses;
  };
  std::string_view name(const FileCall& call, std::uint32_t function) const;

  const reader::Trace& trace_;
  const bool by_function_;
  std::map<std::pair<std::uint32_t, std::string_view>, Group> groups_;
};

}  // namespace karst::analysis
