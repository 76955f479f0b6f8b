#include "sandbox/credentials.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace karst::sandbox {

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
  bool there = false;
  std::ifstream status(process.path("status"));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    // Real, effective, saved and file system's: the first that is not root's counts.
    if (key == "Uid:" || key == "Gid:") {
      std::uint32_t id = 0;
      std::uint32_t chosen = 0;
      while (words >> id)
        if (chosen == 0) chosen = id;
      (key == "Uid:" ? found.uid : found.gid) = chosen;
      there = there || key == "Uid:";
    } else if (key == "Groups:") {
      for (gid_t group = 0; words >> group;) found.groups.push_back(group);
    }
  }
  if (there && found.uid != 0 && (arena_uid == 0 || arena_uid == found.uid)) return found;
  return of_owner(arena_uid, arena_gid);
}

}  // namespace karst::sandbox
