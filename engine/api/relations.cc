// SPDX-License-Identifier: MIT
#include "engine/api/relations.h"

#include "engine/api/answers.h"
#include "engine/api/explain.h"
#include "engine/api/facts.h"
#include "engine/api/findings.h"
#include "engine/api/flows.h"
#include "engine/api/frames.h"
#include "engine/api/memory.h"
#include "engine/api/outliers.h"
#include "engine/api/requests.h"
#include "engine/api/values.h"

namespace karst::engine {

const std::vector<const answers::Relation*>& relations_of_page() {
  static const std::vector<const answers::Relation*> all =
      answers::with_inner({&call_values(), &explanation_answers(), &finding_answers(), &flow_answers(),
                           &frame_answers(), &function_tables(), &histograms(), &memory_answers(), &request_answers(),
                           &slow_answers(), &trace_facts(), &value_answers()});
  return all;
}

}  // namespace karst::engine
