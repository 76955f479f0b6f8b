// SPDX-License-Identifier: MIT
// The relation of calls.
#pragma once
#include <string_view>

#include "answers/relation.h"

namespace karst::answers {

struct CallRow {
  const reader::Thread* thread = nullptr;
  std::string_view place;      ///< `10@3000ns`: its thread and begin
  std::uint32_t function = 0;  ///< in the thread's process
  std::uint32_t caller = 0;    ///< 0: nothing traced
  std::uint64_t begin_ns = 0, duration_ns = 0;
  bool open_begin = false, open_end = false;
  std::string_view arguments, returned;  ///< as analysis::values_text() has them; empty: nothing was noted

  std::string_view open() const {
    if (open_begin) return open_end ? "begin and end" : "begin";
    return open_end ? "end" : "";
  }
};

const Relation& calls();

}  // namespace karst::answers
