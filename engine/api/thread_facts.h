// SPDX-License-Identifier: MIT
// Threads of api/trace, with what is missing of their events and how many notes they have.
#pragma once
#include "answers/relation.h"
#include "engine/index/index.h"

namespace karst::engine {

const answers::Relation& thread_facts();
/// Uses each as a row.
void each_thread(const TraceIndex& index, const answers::UseRow& use);

}  // namespace karst::engine
