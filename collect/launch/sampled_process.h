// A process of which there are samples alone, as libkarst is not in it: what a trace says of it.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collect/record/recording.h"
#include "symbols/credentials.h"

namespace karst::collect {

/// A program that was started with `command`.
RecordedProcess sampled_program(pid_t pid, const std::string& path, const std::vector<std::string>& command,
                                const ClockPair& start, std::optional<symbols::Credentials> owner);

/// A process that runs, as /proc tells of it, since `start`.
RecordedProcess sampled_process(pid_t pid, const ClockPair& start, std::optional<symbols::Credentials> owner);

}  // namespace karst::collect
