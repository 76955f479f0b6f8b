// SPDX-License-Identifier: MIT
#include "answers/all.h"

#include "answers/calls.h"
#include "answers/changes.h"
#include "answers/check.h"
#include "answers/explanation.h"
#include "answers/files.h"
#include "answers/flows.h"
#include "answers/frames.h"
#include "answers/functions.h"
#include "answers/locks.h"
#include "answers/memory.h"
#include "answers/notes.h"
#include "answers/programs.h"
#include "answers/requests.h"
#include "answers/samples.h"
#include "answers/slow.h"
#include "answers/standing.h"
#include "answers/states.h"
#include "answers/traces.h"
#include "answers/usage.h"
#include "answers/waits.h"

namespace karst::answers {

const std::vector<const Relation*>& all_relations() {
  static const std::vector<const Relation*> all = with_inner({&buckets(),
                                                              &calls(),
                                                              &check_findings(),
                                                              &check_outcomes(),
                                                              &compared_functions(),
                                                              &convoys(),
                                                              &counted_functions(),
                                                              &detectors(),
                                                              &edges(),
                                                              &explanations(),
                                                              &file_calls(),
                                                              &file_users(),
                                                              &files(),
                                                              &findings(),
                                                              &flows(),
                                                              &frame_sets(),
                                                              &frames(),
                                                              &functions(),
                                                              &handled_functions(),
                                                              &left_functions(),
                                                              &lock_holds(),
                                                              &lock_rings(),
                                                              &lock_waits(),
                                                              &locks(),
                                                              &memory_of_functions(),
                                                              &memory_of_paths(),
                                                              &notes(),
                                                              &patchable_functions(),
                                                              &probes(),
                                                              &rare_functions(),
                                                              &requests(),
                                                              &sampled_functions(),
                                                              &slow_calls(),
                                                              &spreads(),
                                                              &standing_processes(),
                                                              &thread_states(),
                                                              &traces(),
                                                              &usage_values(),
                                                              &values_of_calls()});
  return all;
}

}  // namespace karst::answers
