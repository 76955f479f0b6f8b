// SPDX-License-Identifier: MIT
// Whose rights a lookup has: files that a traced program names are opened as its user, not as root.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "base/held_process.h"

namespace karst::sandbox {

struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups{};

  bool operator==(const Credentials&) const = default;

  /// Of who owns a file by the inode, such as a process's arena or a raw trace. None when that is us, or when we are
  /// not root and so have no other rights to take.
  static std::optional<Credentials> of_owner(uid_t uid, gid_t gid);
  static std::optional<Credentials> of_file(const std::filesystem::path& file);
  /// Of a running process, as the kernel tells, whose arena has this owner. Where the two differ (it has changed its
  /// user; or its number is another process's by now) the rights are those of the one that is not root.
  static std::optional<Credentials> of_process(pid_t pid, uid_t arena_uid, gid_t arena_gid);
  /// The same; its number has not become another's.
  static std::optional<Credentials> of_process(const HeldProcess& process, uid_t arena_uid, gid_t arena_gid);
};

}  // namespace karst::sandbox
