// SPDX-License-Identifier: MIT
// Waits in answers about something else: fields of a row that may have one, and the relations of who had the CPU
// meanwhile and of who was waited for.
#pragma once
#include <vector>

#include "answers/relation.h"
#include "words/waits.h"

namespace karst::answers {

/// `told`: null where there is none.
struct WaitRow {
  const reader::Trace& trace;
  const Times& times;
  const words::ToldWait* told;
};

struct CpuShareRow {
  const reader::Trace& trace;
  const Times& times;
  const analysis::CpuShare& of;
};

struct LinkRow {
  const reader::Trace& trace;
  const Times& times;
  const words::ToldLink& of;

  WaitRow wait() const { return {trace, times, of.wait ? &*of.wait : nullptr}; }
};

const Relation& cpu_shares();
const Relation& chain_links();
/// Functions alone: rows are FunctionRef.
const Relation& path_calls();

/// Of a WaitRow: what rows that may have a wait say of it, by fields_of().
std::vector<Field> wait_fields();

}  // namespace karst::answers
