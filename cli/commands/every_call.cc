// SPDX-License-Identifier: MIT
#include "cli/commands/every_call.h"

#include <utility>

#include "base/text.h"

namespace karst::cli {

void EveryCallOptions::add(Command& command) {
  command.add_flag("--all", on,
                   "Keep all calls from now on, on the disk, not the newest that fit into memory; what the disk and "
                   "karst are too slow for is lost and counted");
  command.add_flag("--blocking", blocking,
                   "With --all: lose none. A thread that would overwrite what has not been taken yet waits, for 5 s at "
                   "most if karst takes nothing at all");
  FileRotation::add_option(command, rotate);
  command.add_flag("--raw-events", raw_events, "Write events as they are, 8 bytes each, not packed");
}

Result<FileRotation> EveryCallOptions::check() const {
  auto rotation = FileRotation::parse(rotate);
  if (!rotation) return rotation;
  if (rotation->when.any() && !on) return Error{"--rotate is for traces that keep every call: --all is needed, too"};
  if (blocking && !on) return Error{"--blocking is for traces that keep every call: --all is needed, too"};
  if (on && raw_events) return Error{"--all packs events: leave --raw-events out"};
  return rotation;
}

EveryCall::EveryCall(const EveryCallOptions& options, const FileRotation& rotation, writing::TraceWriter& writer,
                     const std::string& output, bool with_source, collect::GrowingTrace::Events events) {
  if (rotation.when.any()) rotated_.emplace(output, rotation.keep, with_source).serve(events);
  trace_ = std::make_shared<collect::GrowingTrace>(writer, std::move(events), rotation.when);
  if (options.blocking) trace_->block();
}

void EveryCall::tell() const {
  if (const auto waited = trace_->waited(); waited.count() != 0)
    say("threads waited " + duration_text(static_cast<std::uint64_t>(waited.count())) +
        " in all until what they had recorded was taken (--blocking)");
  if (rotated_) rotated_->tell(*trace_);
}

}  // namespace karst::cli
