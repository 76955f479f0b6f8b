#include "answers/all.h"

#include "answers/calls.h"
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
#include "answers/standing.h"
#include "answers/traces.h"

namespace karst::answers {

const std::vector<const Relation*>& all_relations() {
  static const std::vector<const Relation*> all = with_inner({&buckets(),
                                                              &calls(),
                                                              &convoys(),
                                                              &counted_functions(),
                                                              &edges(),
                                                              &file_calls(),
                                                              &file_users(),
                                                              &files(),
                                                              &flows(),
                                                              &frame_sets(),
                                                              &frames(),
                                                              &functions(),
                                                              &handled_functions(),
                                                              &lock_holds(),
                                                              &lock_rings(),
                                                              &lock_waits(),
                                                              &locks(),
                                                              &memory_of_functions(),
                                                              &memory_of_paths(),
                                                              &notes(),
                                                              &patchable_functions(),
                                                              &probes(),
                                                              &requests(),
                                                              &sampled_functions(),
                                                              &spreads(),
                                                              &standing_processes(),
                                                              &traces(),
                                                              &values_of_calls()});
  return all;
}

}  // namespace karst::answers
