// SPDX-License-Identifier: MIT
// The user whom `karst run --user NAME` runs a program as.
#pragma once
#include <string>

#include "base/result.h"
#include "sandbox/credentials.h"

namespace karst::collect {

struct User {
  std::string name;
  std::string home;
  std::string shell;
  sandbox::Credentials rights;  ///< with all groups that the system has the user in

  /// By name. Error: this process is not root, or there is no such user; the message says what to do. Reads the
  /// system's lists of users and groups; from any thread.
  static Result<User> find(const std::string& name);

  /// Gives this process, for good, the user's rights and what goes with them in the environment: HOME, SHELL, USER and
  /// LOGNAME, as sudo does. For a new process before it executes the program. False: errno says why.
  bool become() const;
};

}  // namespace karst::collect
