// SPDX-License-Identifier: MIT
// Processes of which there are samples alone, as libkarst is not in them: what a trace says of them.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/held_process.h"
#include "collect/record/recording.h"
#include "reader/samples.h"
#include "reader/states.h"
#include "sandbox/credentials.h"

namespace karst::collect {

/// A program that is started with `command`.
reader::Process started_process(pid_t pid, const std::string& path, const std::vector<std::string>& command);
/// A process that runs, as /proc tells of it.
reader::Process running_process(const HeldProcess& process);

/// Its threads are those that were sampled. It began, or was attached to, at `start`. Names of threads are by `states`.
RecordedProcess sampled_process(reader::Process process, const ClockPair& start,
                                const std::optional<sandbox::Credentials>& owner, const reader::SampleLog& samples,
                                const reader::StateLog& states);
/// Adds those that were sampled and are not in the list, as descendants that cannot be traced are, by their number; and
/// to those that are in it, and have no threads, the ones that were sampled.
void add_sampled_processes(std::vector<RecordedProcess>& processes, const ClockPair& start,
                           const std::optional<sandbox::Credentials>& owner, const reader::SampleLog& samples,
                           const reader::StateLog& states);

}  // namespace karst::collect
