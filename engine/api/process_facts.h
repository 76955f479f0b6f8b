// SPDX-License-Identifier: MIT
// Processes of api/trace, with when their functions were off and what was kept of them.
#pragma once
#include "answers/relation.h"
#include "engine/index/index.h"

namespace karst::engine {

struct ProcessFact {
  const TraceIndex& index;
  const reader::Process& of;

  std::size_t place() const { return static_cast<std::size_t>(&of - index.trace().processes().data()); }
};

const answers::Relation& process_facts();

}  // namespace karst::engine
