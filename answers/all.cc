#include "answers/all.h"

#include "answers/calls.h"
#include "answers/flows.h"
#include "answers/memory.h"
#include "answers/notes.h"
#include "answers/requests.h"

namespace karst::answers {

const std::vector<const Relation*>& all_relations() {
  static const std::vector<const Relation*> all{&calls(),           &flows(), &flow_steps(), &memory_of_functions(),
                                                &memory_of_paths(), &notes(), &requests()};
  return all;
}

}  // namespace karst::answers
