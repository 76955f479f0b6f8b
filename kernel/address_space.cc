// SPDX-License-Identifier: MIT
#include "kernel/address_space.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernel/perf_ring.h"

namespace karst::kernel {

using kernel::perf_value;

const CodeMapping* find_mapping(const AddressSpace& space, std::uint64_t address) {
  const auto behind = std::upper_bound(space.begin(), space.end(), address,
                                       [](std::uint64_t a, const CodeMapping& m) { return a < m.begin; });
  if (behind == space.begin() || address >= std::prev(behind)->end) return nullptr;
  return &*std::prev(behind);
}

// A program may map new files for ever.
std::uint32_t AddressSpaces::number_of(CodeFile file) {
  constexpr std::size_t kMostFiles = 65536;
  if (files_.size() >= kMostFiles && !numbers_.contains(file)) file = {};
  const auto [at, fresh] = numbers_.try_emplace(file, static_cast<std::uint32_t>(files_.size()));
  if (fresh) files_.push_back(std::move(file));
  return at->second;
}

std::shared_ptr<const AddressSpace> AddressSpaces::of(std::uint32_t pid) const {
  static const auto kNone = std::make_shared<const AddressSpace>();
  const auto at = spaces_.find(pid);
  return at == spaces_.end() ? kNone : at->second;
}

void AddressSpaces::fork(std::uint32_t child, std::uint32_t parent, std::uint32_t tid) {
  if (child == parent) {
    threads_.try_emplace(child, std::set{child}).first->second.insert(tid);
    return;
  }
  const auto at = spaces_.find(parent);
  if (at != spaces_.end()) spaces_[child] = at->second;
  threads_[child] = {tid};
}

void AddressSpaces::exit(std::uint32_t pid, std::uint32_t tid) {
  const auto threads = threads_.find(pid);
  if (threads != threads_.end()) {
    threads->second.erase(tid);
    if (!threads->second.empty()) return;
    threads_.erase(threads);
  }
  spaces_.erase(pid);
}

void AddressSpaces::begin_with(std::uint32_t pid, const std::vector<Mapping>& maps, std::set<std::uint32_t> threads) {
  exec(pid);
  for (const Mapping& m : maps) {
    if (!m.is_executable()) continue;
    // Without a file they are called as in records.
    map(pid, {m.begin, m.end, m.offset, 0}, {m.path.empty() ? "//anon" : m.path, {}, m.inode});
  }
  threads_[pid] = std::move(threads);
}

// pid, tid, address, length, offset in the file; device and inode, or a build-id; protection, flags, path.
void AddressSpaces::map(std::uint16_t misc, std::span<const std::byte> record) {
  constexpr std::size_t kIdentity = 32, kProtection = 56, kPath = 64, kMostBuildId = 20;
  const std::uint64_t begin = perf_value<std::uint64_t>(record, 8);
  const std::uint64_t length = perf_value<std::uint64_t>(record, 16);
  if (record.size() < kPath || (perf_value<std::uint32_t>(record, kProtection) & PROT_EXEC) == 0 || length == 0 ||
      begin + length < begin)
    return;
  CodeFile file;
  const auto* const path = reinterpret_cast<const char*>(record.data()) + kPath;
  file.path = std::string(path, strnlen(path, record.size() - kPath));
  if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    const auto size = std::min<std::size_t>(perf_value<std::uint8_t>(record, kIdentity), kMostBuildId);
    file.build_id = std::string(reinterpret_cast<const char*>(record.data()) + kIdentity + 4, size);
  } else {
    file.inode = perf_value<std::uint64_t>(record, kIdentity + 8);
  }
  map(perf_value<std::uint32_t>(record, 0), {begin, begin + length, perf_value<std::uint64_t>(record, 24), 0},
      std::move(file));
}

void AddressSpaces::map(std::uint32_t pid, CodeMapping made, CodeFile file) {
  made.file = number_of(std::move(file));
  auto& space = spaces_[pid];
  constexpr std::size_t kMostMappings = 8192;
  if (space != nullptr && space->size() >= kMostMappings) return;
  AddressSpace next;
  for (const CodeMapping& old : space == nullptr ? AddressSpace() : *space) {
    // What it lies over is gone there.
    if (old.begin < made.begin) next.push_back({old.begin, std::min(old.end, made.begin), old.offset, old.file});
    if (old.end > made.end) {
      const std::uint64_t from = std::max(old.begin, made.end);
      next.push_back({from, old.end, old.offset + (from - old.begin), old.file});
    }
  }
  next.insert(std::upper_bound(next.begin(), next.end(), made,
                               [](const CodeMapping& a, const CodeMapping& b) { return a.begin < b.begin; }),
              made);
  space = std::make_shared<const AddressSpace>(std::move(next));
}

}  // namespace karst::kernel
