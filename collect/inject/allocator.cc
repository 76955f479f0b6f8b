// SPDX-License-Identifier: MIT
#include "collect/inject/allocator.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/descriptor.h"
#include "patch/allocator.h"
#include "sandbox/credentials.h"
#include "sandbox/sandbox.h"

namespace karst::collect {
namespace {

using File = std::tuple<dev_t, ino_t, time_t, long>;

/// Of these modules it is known which code takes locks of an allocator (BusyCode), or they have none.
bool is_known_elsewhere(const std::string& file) {
  constexpr std::array<const char*, 6> kFiles = {"libc.so",   "libc-2.",     "libstdc++.so",
                                                 "libc++.so", "libgcc_s.so", "libkarst"};
  return std::any_of(kFiles.begin(), kFiles.end(), [&](const char* name) { return file.starts_with(name); });
}

patch::AllocatorCode code_in(const std::string& program, const HeldProcess& process) {
  const Descriptor file(sandbox::open_regular(program.c_str()));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return {};
  static std::mutex s_lock;
  static std::map<File, patch::AllocatorCode> s_known;
  const std::lock_guard held(s_lock);
  const File key{status.st_dev, status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  const auto [known, is_new] = s_known.try_emplace(key);
  if (!is_new) return known->second;
  auto found = patch::allocator_code(file.get(), sandbox::Credentials::of_process(process, geteuid(), getegid()));
  if (found) known->second = std::move(*found);
  return known->second;
}

}  // namespace

OwnAllocator own_allocator(const HeldProcess& process, const ForeignMemory& memory,
                           const std::vector<Mapping>& mappings) {
  const std::string link = process.path("exe");
  std::error_code error;
  const std::string program = std::filesystem::read_symlink(link, error);
  const auto begin = std::find_if(mappings.begin(), mappings.end(),
                                  [&](const Mapping& m) { return m.offset == 0 && m.path == program; });
  if (program.empty() || begin == mappings.end()) return {};
  const auto module = ForeignModule::of(memory, begin->begin);
  if (!module || module->find(memory, "malloc") == 0) return {};
  patch::AllocatorCode found = code_in(link, process);
  const auto leads_on = [&](std::uint64_t pointer, bool is_slot) {
    const auto to = memory.get<std::uint64_t>(module->bias() + pointer);
    const auto at = std::find_if(mappings.begin(), mappings.end(),
                                 [&](const Mapping& m) { return to && *to >= m.begin && *to < m.end; });
    if (!to || at == mappings.end()) return to != 0;
    return !is_known_elsewhere(at->file_name()) && !(is_slot && at->path == program);
  };
  const bool is_known =
      std::none_of(found.pointers.begin(), found.pointers.end(), [&](std::uint64_t p) { return leads_on(p, false); }) &&
      std::none_of(found.slots.begin(), found.slots.end(), [&](std::uint64_t p) { return leads_on(p, true); });
  if (!is_known) found.code.clear();
  return {program, std::move(found.code)};
}

}  // namespace karst::collect
