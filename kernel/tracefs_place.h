// SPDX-License-Identifier: MIT
// Where tracefs is, and what is left there of runs that were killed.
#pragma once
#include <sys/types.h>

#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/result.h"

namespace karst::kernel {

/// The root of tracefs. If the system has not mounted it, it is mounted for this process alone: by a descriptor, in no
/// directory, gone with it.
class TracefsPlace {
 public:
  /// Error: there is none, or it may not be used; says what would be needed.
  static Result<TracefsPlace> find();
  const std::string& path() const { return path_; }

 private:
  TracefsPlace(std::string path, Descriptor mount) : path_(std::move(path)), mount_(std::move(mount)) {}
  std::string path_;
  Descriptor mount_;
};

/// The name of this process's instance: `karst-PID-START`, START being when it began in clock ticks after boot.
std::string own_instance_name();
/// True if the process that made an instance of this name has ended. False for names of another form.
bool is_orphan(const std::string& instance);
/// Removes all orphans. Returns how many.
int remove_orphans(const TracefsPlace& place);

}  // namespace karst::kernel
