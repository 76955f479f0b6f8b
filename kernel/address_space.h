// SPDX-License-Identifier: MIT
// Which files' code lies where in the processes of a run, as the kernel's records tell: mappings, forks, execs.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/process_maps.h"

struct perf_event_header;

namespace karst::kernel {

/// A file with code. Whose identity is not known (a kernel before 5.12, or no build-id) has its inode's number.
struct CodeFile {
  std::string path;
  std::string build_id;  ///< raw bytes; empty: not known
  std::uint64_t inode = 0;
  auto operator<=>(const CodeFile&) const = default;
};

struct CodeMapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< of `begin`, in the file
  std::uint32_t file = 0;    ///< place in AddressSpaces::files()
  bool operator==(const CodeMapping&) const = default;
};

/// Executable mappings of one process at one time, in order of address.
using AddressSpace = std::vector<CodeMapping>;

/// Null: no mapping has it.
const CodeMapping* find_mapping(const AddressSpace& space, std::uint64_t address);

/// Takes records in order of time. Use from one thread; spaces that it gave stay as they were.
class AddressSpaces {
 public:
  /// PERF_RECORD_MMAP2, whose bytes follow the header.
  void map(std::uint16_t misc, std::span<const std::byte> record);
  /// A process that runs already, with these threads.
  void begin_with(std::uint32_t pid, const std::vector<Mapping>& maps, std::set<std::uint32_t> threads);
  /// A process was forked, whose first thread is `tid`; it has what its parent had. `child` and `parent` are the same:
  /// it has this thread more.
  void fork(std::uint32_t child, std::uint32_t parent, std::uint32_t tid);
  /// A thread of the process has ended; with the last one what it had mapped is forgotten.
  void exit(std::uint32_t pid, std::uint32_t tid);
  /// It is another program now, which has mapped nothing yet.
  void exec(std::uint32_t pid) {
    spaces_.erase(pid);
    threads_.erase(pid);  // which it ended
  }
  /// Never null.
  std::shared_ptr<const AddressSpace> of(std::uint32_t pid) const;
  const std::vector<CodeFile>& files() const { return files_; }

 private:
  std::uint32_t number_of(CodeFile file);
  void map(std::uint32_t pid, CodeMapping made, CodeFile file);

  std::map<std::uint32_t, std::shared_ptr<const AddressSpace>> spaces_;
  std::map<std::uint32_t, std::set<std::uint32_t>> threads_;  // none: the first one alone
  std::map<CodeFile, std::uint32_t> numbers_;
  std::vector<CodeFile> files_;
};

}  // namespace karst::kernel
