// All relations of answers/, for tests of what holds for each.
#pragma once
#include <vector>

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
#include "answers/problems.h"
#include "answers/programs.h"
#include "answers/requests.h"
#include "answers/samples.h"
#include "answers/slow.h"
#include "answers/standing.h"
#include "answers/states.h"
#include "answers/traces.h"
#include "answers/usage.h"
#include "answers/waits.h"

namespace karst::test {

inline const std::vector<const answers::Relation*>& all_relations() {
  using namespace answers;
  static const std::vector<const Relation*> all = with_inner({&buckets(),
                                                              &calls(),
                                                              &causes(),
                                                              &chain_links(),
                                                              &check_findings(),
                                                              &check_outcomes(),
                                                              &compared_functions(),
                                                              &convoys(),
                                                              &counted_functions(),
                                                              &cpu_shares(),
                                                              &detectors(),
                                                              &edges(),
                                                              &explanations(),
                                                              &file_calls(),
                                                              &file_users(),
                                                              &file_uses(),
                                                              &files(),
                                                              &files_of_user(),
                                                              &findings(),
                                                              &flow_steps(),
                                                              &flows(),
                                                              &frame_sets(),
                                                              &frames(),
                                                              &functions(),
                                                              &handled_functions(),
                                                              &left_functions(),
                                                              &lock_holds(),
                                                              &lock_orders(),
                                                              &lock_pairs(),
                                                              &lock_rings(),
                                                              &lock_waits(),
                                                              &locks(),
                                                              &memory_of_functions(),
                                                              &memory_of_paths(),
                                                              &notes(),
                                                              &patchable_functions(),
                                                              &path_calls(),
                                                              &probes(),
                                                              &problems(),
                                                              &rare_functions(),
                                                              &requests(),
                                                              &sampled_below(),
                                                              &sampled_functions(),
                                                              &slow_calls(),
                                                              &slow_steps(),
                                                              &slowest_frames(),
                                                              &spreads(),
                                                              &standing_processes(),
                                                              &thread_states(),
                                                              &traces(),
                                                              &usage(),
                                                              &usage_values(),
                                                              &value_hints(),
                                                              &values_of_calls()});
  return all;
}

}  // namespace karst::test
