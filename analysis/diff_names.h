// SPDX-License-Identifier: MIT
// What makes functions of two runs the same: the name and the module's file name, as paths and lines differ between
// builds. One without a name is the same only at the same address of the same build of its module.
#pragma once
#include <string>
#include <utility>

#include "reader/trace.h"

namespace karst::analysis {

class DiffNames {
 public:
  using Key = std::pair<std::string, std::string>;  ///< name, module

  /// Of a run's functions. `one_trace`: both sides are parts of it. `trace` must outlive it.
  DiffNames(const reader::Trace& trace, bool one_trace);
  Key of(const std::string& name, const std::string& module) const;

 private:
  const reader::Trace& trace_;
  bool one_trace_;
  std::string program_;  // the traced one, which may be called otherwise on the other side
};

}  // namespace karst::analysis
