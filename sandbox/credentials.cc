// SPDX-License-Identifier: MIT
#include "sandbox/credentials.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/process_status.h"

namespace karst::sandbox {
namespace {

/// Of the real, effective, saved and file system's user or group; 0: all are root's.
std::uint32_t first_not_of_root(const std::vector<std::uint64_t>& ids) {
  const auto at = std::find_if(ids.begin(), ids.end(), [](std::uint64_t id) { return id != 0; });
  return at == ids.end() ? 0 : static_cast<std::uint32_t>(*at);
}

}  // namespace

std::optional<Credentials> Credentials::of_owner(uid_t uid, gid_t gid) {
  if (::geteuid() != 0 || uid == 0) return std::nullopt;
  return Credentials{uid, gid};
}

std::optional<Credentials> Credentials::of_file(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;  // who opens it will say so
  return of_owner(status.st_uid, status.st_gid);
}

std::optional<Credentials> Credentials::of_process(pid_t pid, uid_t arena_uid, gid_t arena_gid) {
  const auto process = HeldProcess::open(pid);
  return process ? of_process(*process, arena_uid, arena_gid) : of_owner(arena_uid, arena_gid);
}

std::optional<Credentials> Credentials::of_process(const HeldProcess& process, uid_t arena_uid, gid_t arena_gid) {
  if (::geteuid() != 0) return std::nullopt;
  Credentials found;
  const auto status = ProcessStatus::read(process.path("status"));
  found.uid = first_not_of_root(status.numbers("Uid"));
  found.gid = first_not_of_root(status.numbers("Gid"));
  for (const std::uint64_t group : status.numbers("Groups")) found.groups.push_back(static_cast<gid_t>(group));
  if (found.uid != 0 && (arena_uid == 0 || arena_uid == found.uid)) return found;
  return of_owner(arena_uid, arena_gid);
}

}  // namespace karst::sandbox
