// SPDX-License-Identifier: MIT
// The relation of thread states (reader/states.h): when each thread ran, waited for a CPU or was blocked.
#pragma once
#include "answers/relation.h"
#include "reader/states.h"

namespace karst::answers {

/// State number `at` of a thread's. All must outlive it.
struct StateRow {
  const reader::Trace& trace;
  const Times& times;
  const reader::Thread& thread;
  const reader::ThreadStates& of;
  std::size_t at;
};

const Relation& thread_states();

}  // namespace karst::answers
