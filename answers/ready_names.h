// SPDX-License-Identifier: MIT
// Names of functions in the form in which they are written, made once: there are many calls of few functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/trace.h"

namespace karst::answers {

/// Keeps those of one process at a time. Use from one thread.
class ReadyNames {
 public:
  using Form = std::string (*)(std::string_view);
  /// `end` stands behind each.
  ReadyNames(const reader::Trace* trace, Form form, std::string_view end = {})
      : trace_(trace), form_(form), end_(end) {}

  /// Valid until the next process's is asked for.
  const std::string& of(const reader::Process& process, std::uint32_t id) {
    if (process_ != &process) names_.clear();
    process_ = &process;
    if (id >= names_.size()) names_.resize(id + std::size_t{1});  // ids have 23 bits
    std::string& name = names_[id];
    if (name.empty()) name = form_(trace_->function(process, id).name).append(end_);
    return name;
  }

 private:
  const reader::Trace* trace_;
  Form form_;
  std::string_view end_;
  const reader::Process* process_ = nullptr;
  std::vector<std::string> names_;  // by id
};

}  // namespace karst::answers
