// SPDX-License-Identifier: MIT
// What a traced process left when nobody collected its trace: the file that its arena lies in (file=PATH), or a core.
//
// Both are read as the arena of a living process is, and become a trace in the same way (record/recording.h).
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/arena/view.h"
#include "collect/record/recording.h"
#include "collect/recover/core.h"
#include "sandbox/credentials.h"

namespace karst::collect {

struct Leftover {
  ArenaView arena;
  std::optional<sandbox::Credentials> as;  ///< who owns the file: names are looked up with these rights
  std::optional<CoreFile> core;            ///< if it is one
  bool lives = false;                      ///< the process is still there (of an arena's file)
};

/// Opens an arena's file or a core. Error: why there is no trace in it, to be put behind the file's name.
Result<Leftover> open_leftover(const std::filesystem::path& file);

/// "SIGSEGV at address 0x10", "SIGABRT"; of any number.
std::string signal_text(const CoreSignal& signal);

struct RecoverOptions {
  std::filesystem::path program;  ///< where the executable is now; empty: where it was
  RecordingOptions recording;
};

/// Writes the trace. What is not known, as when the process ended, the trace does not say.
Result<RecordingSummary> recover(Leftover left, RecoverOptions options, writing::TraceWriter& writer);

}  // namespace karst::collect
