// SPDX-License-Identifier: MIT
// Directories of uftrace. `info` begins with a header; `task.txt` lists threads; TID.dat has a thread's records, each
// 16 bytes: when, and in one word what, how deep and at which address. Names are in files beside (uftrace_files.h).
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/event.h"
#include "import/edges.h"
#include "import/import.h"
#include "import/text.h"
#include "import/uftrace_files.h"

namespace karst::importing {
namespace {

constexpr std::string_view kUftraceMagic("Ftrace!\0", 8);
constexpr std::size_t kMostInfo = std::size_t{64} << 20;
constexpr std::size_t kMostData = std::size_t{1} << 36;
constexpr std::size_t kMostForks = 64;                // generations that are gone through for a session
constexpr std::uint64_t kRelativeSymbols = 1U << 5U;  // SYM_REL_ADDR

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint16_t header_size;
  std::uint8_t endian;      ///< 1: little
  std::uint8_t word_class;  ///< 2: 64 bits
  std::uint64_t features;
  std::uint64_t info;
  std::uint64_t max_stack;
};
static_assert(sizeof(Header) == 40);

/// One record, as it lies in TID.dat.
struct Record {
  enum Type : std::uint8_t { kEntry, kExit, kLost, kEvent };
  std::uint64_t ns;
  std::uint64_t word;  ///< from its lowest bit on: type 2, more 1, magic 3, depth 10, address 48

  Type type() const { return static_cast<Type>(word & 3U); }
  bool has_data_behind() const { return (word >> 2U & 1U) != 0; }
  bool is_sound() const { return (word >> 3U & 7U) == 5; }
  std::uint64_t address() const { return word >> 16U; }
};
static_assert(sizeof(Record) == 16);

class UftraceReader {
 public:
  explicit UftraceReader(int directory, std::string_view tasks) : directory_(directory), tasks_(tasks) {}

  ForeignTrace read() {
    std::set<std::uint32_t> done;
    for (const UftraceTask& task : tasks_.tasks)
      if (done.insert(task.tid).second) add_thread(task);
    return std::move(trace_);
  }

 private:
  struct ProcessNumbers {
    std::size_t number = 0;  ///< in ForeignTrace::processes
    Numbers functions;
  };
  struct NamedAddresses {
    std::unique_ptr<UftraceSession> session;
    std::unordered_map<std::uint64_t, std::string> names;
  };

  /// The session of a process at this time, which may be the one of a process that it was forked from.
  const UftraceExec* exec_of(std::uint32_t pid, std::uint64_t ns) const {
    for (std::size_t i = 0; i < kMostForks; ++i) {
      if (const auto own = tasks_.execs.find(pid); own != tasks_.execs.end()) {
        const auto behind = std::upper_bound(own->second.begin(), own->second.end(), ns,
                                             [](std::uint64_t at, const UftraceExec& exec) { return at < exec.ns; });
        return behind == own->second.begin() ? &*behind : &*std::prev(behind);
      }
      const auto parent = tasks_.parents.find(pid);
      if (parent == tasks_.parents.end()) break;
      pid = parent->second;
    }
    return nullptr;
  }

  const std::string& name_of(const UftraceExec* exec, std::uint64_t address) {
    NamedAddresses& known = sessions_[exec == nullptr ? "" : exec->sid];
    if (known.session == nullptr)
      known.session = std::make_unique<UftraceSession>(directory_, exec == nullptr ? "" : exec->sid);
    std::string& name = known.names[address];
    if (name.empty()) name = known.session->name_at(address);
    return name;
  }

  ProcessNumbers& process_of(std::uint32_t pid, const UftraceExec* exec) {
    const auto [at, is_new] = processes_.try_emplace(pid);
    if (is_new) {
      at->second.number = trace_.processes.size();
      Process& made = trace_.processes.emplace_back();
      made.pid = pid;
      const std::string_view path = exec == nullptr ? std::string_view() : exec->executable;
      made.name = path.empty() ? "process " + std::to_string(pid) : cut(path.substr(path.rfind('/') + 1), kMostName);
    }
    return at->second;
  }

  std::optional<std::uint32_t> function_of(ProcessNumbers& process, const std::string& name) {
    if (const auto found = process.functions.find(name); found != process.functions.end()) return found->second;
    auto& functions = trace_.processes[process.number].functions;
    if (functions.size() + 1 >= format::kMaxFunctionId) {
      ++trace_.left_out["events of names beyond 8 million"];
      return std::nullopt;
    }
    functions.push_back({name, {}, 0, false});
    return process.functions[name] = static_cast<std::uint32_t>(functions.size() - 1);
  }

  void add_thread(const UftraceTask& task) {
    const auto bytes = read_member(directory_, std::to_string(task.tid) + ".dat", kMostData);
    if (!bytes) {
      ++trace_.left_out["threads whose records are not there"];
      return;
    }
    std::uint64_t first_ns = 0;
    if (bytes->size() >= sizeof first_ns) std::memcpy(&first_ns, bytes->data(), sizeof first_ns);
    ProcessNumbers& process = process_of(task.pid, exec_of(task.pid, first_ns));
    Thread& thread = trace_.processes[process.number].threads.emplace_back();
    thread.tid = task.tid;
    thread.name = trace_.processes[process.number].name;
    std::vector<Edge> edges = edges_of(*bytes, task, process);
    if (const auto without = match_edges(edges, thread.calls))
      trace_.left_out["ends of calls that have no begin"] += without;
  }

  std::vector<Edge> edges_of(std::string_view bytes, const UftraceTask& task, ProcessNumbers& process) {
    std::vector<Edge> edges;
    std::uint64_t order = 0;
    for (; bytes.size() >= sizeof(Record); bytes.remove_prefix(sizeof(Record))) {
      Record record{};
      std::memcpy(&record, bytes.data(), sizeof record);
      if (!record.is_sound() || record.ns > static_cast<std::uint64_t>(kLatestNs)) {
        ++trace_.left_out["threads whose records are damaged from some place on"];
        return edges;
      }
      if (record.type() == Record::kLost) {
        ++trace_.left_out["places where uftrace lost records"];
      } else if (record.type() == Record::kEvent) {
        ++trace_.left_out["events that are no calls"];
      } else {
        const UftraceExec* const exec = exec_of(task.pid, record.ns);
        const bool begins = record.type() == Record::kEntry;
        // An exit belongs to the innermost call, whatever its address is.
        const auto function = begins ? function_of(process, name_of(exec, record.address())) : std::nullopt;
        if (!begins || function)
          edges.push_back({{static_cast<std::int64_t>(record.ns), ++order}, begins, function, 0});
      }
      if (record.has_data_behind()) {  // how much, only the options of uftrace's own command line say
        ++trace_.left_out["threads, from their first call with noted arguments on"];
        return edges;
      }
    }
    if (!bytes.empty()) ++trace_.left_out["records that are not whole"];
    return edges;
  }

  int directory_;
  UftraceTasks tasks_;
  std::map<std::string, NamedAddresses> sessions_;
  std::map<std::uint32_t, ProcessNumbers> processes_;  // by pid
  ForeignTrace trace_;
};

std::optional<Header> header_in(int directory) {
  const auto info = read_member(directory, "info", kMostInfo);
  Header header{};
  if (!info || info->size() < sizeof header) return std::nullopt;
  std::memcpy(&header, info->data(), sizeof header);
  return std::memcmp(header.magic, kUftraceMagic.data(), sizeof header.magic) == 0 ? std::optional(header)
                                                                                   : std::nullopt;
}

}  // namespace

bool may_be_uftrace(int directory) { return header_in(directory).has_value(); }

Result<ForeignTrace> import_uftrace(int directory) {
  static_assert(std::endian::native == std::endian::little);
  const auto header = header_in(directory);
  if (!header) return Error{"it is no directory of uftrace's: its file 'info' is missing or damaged"};
  if (header->version != 4 || header->endian != 1 || header->word_class != 2 ||
      (header->features & kRelativeSymbols) == 0)
    return Error{"it is of another version of uftrace, or of another kind of machine: version 4 of x86-64 is read"};
  const auto tasks = read_member(directory, "task.txt", kMostInfo);
  if (!tasks) return Error{"its file 'task.txt' is missing"};
  return UftraceReader(directory, *tasks).read();
}

}  // namespace karst::importing
