// SPDX-License-Identifier: MIT
// What karst run alone knows of a stretch of time, beside the calls: thread states and the triggers that were hit.
// Given to who writes a snapshot (format/session.h, kAsks), and asked for.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "collect/launch/attach.h"
#include "collect/launch/session.h"
#include "collect/record/recording.h"
#include "kernel/recorder.h"
#include "reader/states.h"

namespace karst::collect {

/// Answers `asker` with what `states` has up to now. `process`: whose arena it names; null: there is none.
void give_answer(Arrival asker, kernel::StateRecorder& states, RecordedProcess* process);

struct Answered {
  reader::StateLog states;  ///< where there is no answer, its source says why
  std::vector<reader::Moment> moments;
};

/// `user`: the process's. Asks the session that the process was started with, if it is one of `karst run`'s; none: it
/// was not, and nobody was asked. What comes is as hostile as any trace. Waits for format::kAnswerWithin at most.
std::optional<Answered> ask_session(const HeldProcess& process, uid_t user, const ArenaView& arena,
                                    std::uint64_t from_ticks, std::uint64_t to_ticks);

}  // namespace karst::collect
