// A process of which there are samples alone, as libkarst is not in it: what a trace says of it.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collect/record/recording.h"
#include "reader/samples.h"
#include "reader/states.h"
#include "symbols/credentials.h"

namespace karst::collect {

/// A program that is started with `command`.
reader::Process started_process(pid_t pid, const std::string& path, const std::vector<std::string>& command);
/// A process that runs, as /proc tells of it.
reader::Process running_process(pid_t pid);

/// Its threads are those that were sampled, with their names by `states`. It began, or was attached to, at `start`.
RecordedProcess sampled_process(reader::Process process, const ClockPair& start,
                                std::optional<symbols::Credentials> owner, const reader::SampleLog& samples,
                                const reader::StateLog& states);

}  // namespace karst::collect
