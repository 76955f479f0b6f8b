#include "answers/all.h"

#include "answers/flows.h"
#include "answers/requests.h"

namespace karst::answers {

const std::vector<const Relation*>& all_relations() {
  static const std::vector<const Relation*> all{&flows(), &flow_steps(), &requests()};
  return all;
}

}  // namespace karst::answers
