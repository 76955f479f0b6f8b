#include "answers/all.h"

#include "answers/calls.h"
#include "answers/changes.h"
#include "answers/explanation.h"
#include "answers/files.h"
#include "answers/flows.h"
#include "answers/functions.h"
#include "answers/locks.h"
#include "answers/memory.h"
#include "answers/notes.h"
#include "answers/requests.h"
#include "answers/samples.h"
#include "answers/slow.h"
#include "answers/waits.h"

namespace karst::answers {

const std::vector<const Relation*>& all_relations() {
  static const std::vector<const Relation*> all{&buckets(),
                                                &convoys(),
                                                &edges(),
                                                &functions(),
                                                &spreads(),
                                                &values_of_calls(),
                                                &lock_holds(),
                                                &lock_orders(),
                                                &lock_pairs(),
                                                &lock_rings(),
                                                &lock_waits(),
                                                &locks(),
                                                &calls(),
                                                &causes(),
                                                &compared_functions(),
                                                &cpu_shares(),
                                                &explanations(),
                                                &file_calls(),
                                                &file_users(),
                                                &file_uses(),
                                                &files(),
                                                &files_of_user(),
                                                &findings(),
                                                &flows(),
                                                &flow_steps(),
                                                &chain_links(),
                                                &memory_of_functions(),
                                                &memory_of_paths(),
                                                &notes(),
                                                &path_calls(),
                                                &rare_functions(),
                                                &requests(),
                                                &sampled_below(),
                                                &sampled_functions(),
                                                &slow_calls(),
                                                &slow_steps(),
                                                &value_hints()};
  return all;
}

}  // namespace karst::answers
