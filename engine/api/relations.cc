// SPDX-License-Identifier: MIT
#include "engine/api/relations.h"

#include "answers/check.h"
#include "engine/api/answers.h"
#include "engine/api/call_answers.h"
#include "engine/api/explain.h"
#include "engine/api/facts.h"
#include "engine/api/findings.h"
#include "engine/api/flows.h"
#include "engine/api/frames.h"
#include "engine/api/locks.h"
#include "engine/api/memory.h"
#include "engine/api/outliers.h"
#include "engine/api/requests.h"
#include "engine/api/source.h"
#include "engine/api/states.h"
#include "engine/api/values.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {

const std::vector<const answers::Relation*>& relations_of_page() {
  static const std::vector<const answers::Relation*> all = [] {
    std::vector<const answers::Relation*> answers = {
        &call_infos(),      &explanation_answers(), &finding_answers(), &flow_answers(),   &frame_answers(),
        &function_tables(), &histograms(),          &lock_answers(),    &memory_answers(), &occurrence_answers(),
        &request_answers(), &slow_answers(),        &source_texts(),    &state_lines(),    &thread_sums(),
        &trace_facts(),     &value_answers()};
    for (const TrackKind* kind : all_track_kinds())
      if (kind->list() != nullptr) answers.push_back(kind->list());
    return answers::with_inner(answers);
  }();
  return all;
}

const std::vector<const answers::Relation*>& relations_of_programs() {
  static const std::vector<const answers::Relation*> all =
      answers::with_inner({&answers::check_findings(), &answers::check_outcomes()});
  return all;
}

}  // namespace karst::engine
