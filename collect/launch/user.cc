// SPDX-License-Identifier: MIT
// All that allocates or reads files is done in find(): become() runs between fork and exec.
#include "collect/launch/user.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace karst::collect {

Result<User> User::find(const std::string& name) {
  if (geteuid() != 0) return Error{"only root may run a program as another user: put sudo in front of karst"};
  std::vector<char> space(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  const int error = getpwnam_r(name.c_str(), &entry, space.data(), space.size(), &found);
  if (found == nullptr)
    return Error{error == 0 ? "there is no user of that name here" : std::string(std::strerror(error))};
  User user{found->pw_name, found->pw_dir, found->pw_shell, {found->pw_uid, found->pw_gid, {}}};
  if (user.shell.empty()) user.shell = "/bin/sh";
  int count = 64;
  do {
    user.rights.groups.resize(static_cast<std::size_t>(count));
  } while (getgrouplist(name.c_str(), found->pw_gid, user.rights.groups.data(), &count) < 0);
  user.rights.groups.resize(static_cast<std::size_t>(count));
  return user;
}

bool User::become() const {
  if (setgroups(rights.groups.size(), rights.groups.data()) != 0 ||
      setresgid(rights.gid, rights.gid, rights.gid) != 0 || setresuid(rights.uid, rights.uid, rights.uid) != 0)
    return false;
  setenv("HOME", home.c_str(), 1);
  setenv("SHELL", shell.c_str(), 1);
  setenv("USER", name.c_str(), 1);
  setenv("LOGNAME", name.c_str(), 1);
  return true;
}

}  // namespace karst::collect
