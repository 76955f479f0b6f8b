// SPDX-License-Identifier: MIT
// The threads that a running process has.
#pragma once
#include <sys/types.h>

#include <set>
#include <vector>

#include "base/held_process.h"
#include "kernel/record_store.h"

namespace karst::kernel {

/// Those that are not in `known`, which gets them. Threads that the process makes meanwhile may be missing: ask until
/// there are none.
std::vector<pid_t> new_threads(pid_t process, std::set<pid_t>& known);
std::vector<pid_t> new_threads(const HeldProcess& process, std::set<pid_t>& known);
/// The same; the store gets their names.
std::vector<pid_t> new_threads(pid_t process, std::set<pid_t>& known, RecordStore& store);

}  // namespace karst::kernel
