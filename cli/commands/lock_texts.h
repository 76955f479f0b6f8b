// SPDX-License-Identifier: MIT
// How locks, threads and times are called where `karst locks` tells of them.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/holds.h"
#include "analysis/locks.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"

namespace karst::cli {

class LockTexts {
 public:
  /// `input` must outlive it.
  explicit LockTexts(const Input& input) : input_(input), names_(input.trace) {}

  const analysis::LockNames& names() const { return names_; }
  std::uint64_t ns(std::uint64_t ticks) const { return input_.trace.clock().to_ns(ticks); }
  std::uint64_t since_start(std::uint64_t ticks) const {
    const std::uint64_t start = analysis::first_ticks(input_.trace);
    return ticks > start ? ticks - start : 0;
  }

  std::string duration(std::uint64_t ticks) const { return duration_text(ns(ticks)); }

  std::string_view name(const reader::Process& process, std::uint32_t function) const {
    return function == 0 ? std::string_view() : input_.trace.function(process, function).name;
  }
  std::string plain(const reader::Process& process, std::uint32_t function) const {
    return function == 0 ? std::string("nothing traced") : printable(plain_name(name(process, function)));
  }
  std::string called(std::uint32_t process, std::uint64_t address) const {
    const std::string_view name = names_.of(process, address);
    return name.empty() ? fmt::format("{:#x}", address) : fmt::format("{} ({:#x})", printable(name), address);
  }
  std::string thread_text(const reader::Thread& thread) const {
    return fmt::format("thread {} {}", thread.tid, printable(thread.name));
  }

  /// By --function.
  bool is_asked_for(const analysis::LockHold& hold) const {
    const auto* set = input_.function_set();
    return set == nullptr || set->contains(hold.thread->process, hold.taken_in);
  }

  void line(Screen& screen, const std::string& text, std::size_t indent) const {
    screen.output().append(wrap(text, screen.width(), indent) + "\n");
  }

 protected:
  const Input& input_;

 private:
  analysis::LockNames names_;
};

}  // namespace karst::cli
