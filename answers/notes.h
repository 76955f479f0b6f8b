// SPDX-License-Identifier: MIT
// The relation of notes (analysis/notes.h).
#pragma once
#include "analysis/notes.h"
#include "answers/relation.h"

namespace karst::answers {

struct NoteRow {
  const reader::Trace& trace;
  const Times& times;
  const reader::Thread& thread;
  const reader::Calls& calls;  ///< of the thread
  const reader::Note& note;    ///< of these calls
};

const Relation& notes();

}  // namespace karst::answers
