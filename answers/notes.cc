// SPDX-License-Identifier: MIT
#include "answers/notes.h"

#include "analysis/log_text.h"

namespace karst::answers {

const Relation& notes() {
  static const Relation relation{
      "notes",
      "note",
      "A row for each note of the program's own",
      {field<NoteRow>("time", Type::kTime, "after the trace's first event",
                      [](const NoteRow& r) { return r.times.since_start(r.note.ticks); }),
       field<NoteRow>("kind", Type::kText, "what it is: message, value, request and so on",
                      [](const NoteRow& r) { return std::string_view(format::kind_of_note(r.note.kind).word); }),
       field<NoteRow>("name", Type::kText, "as the program says it",
                      [](const NoteRow& r) { return analysis::note_name(r.trace, r.thread, r.note); }),
       field<NoteRow>("value", Type::kText, "what it says",
                      [](const NoteRow& r) { return analysis::note_value(r.trace, r.thread, r.calls, r.note); }),
       field<NoteRow>("process", Type::kProcess, "of the thread",
                      [](const NoteRow& r) { return ProcessRef{r.thread.process}; }),
       field<NoteRow>("thread", Type::kThread, "which said it", [](const NoteRow& r) { return ThreadRef{&r.thread}; }),
       field<NoteRow>(
           "in", Type::kFunction, "the call that it is in",
           [](const NoteRow& r) {
             return FunctionRef{r.thread.process, r.note.row == reader::kNoParent ? 0 : r.calls.function[r.note.row]};
           }),
       field<NoteRow>("level", Type::kText, "of a log's line: debug, info, warning or error",
                      [](const NoteRow& r) { return analysis::log_level_name(analysis::note_level(r.calls, r.note)); }),
       field_if_known<NoteRow>(
           "duration", Type::kDuration, "what tracing took, of a note of that", [](const NoteRow& r) {
             return r.note.is(format::NoteKind::kOverhead)
                        ? value_of(r.times.ns(format::overhead_ticks(analysis::note_bits(r.calls, r.note))))
                        : Value();
           })}};
  return relation;
}

}  // namespace karst::answers
