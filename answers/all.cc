#include "answers/all.h"

#include "answers/calls.h"
#include "answers/files.h"
#include "answers/flows.h"
#include "answers/memory.h"
#include "answers/notes.h"
#include "answers/requests.h"

namespace karst::answers {

const std::vector<const Relation*>& all_relations() {
  static const std::vector<const Relation*> all{
      &calls(), &file_calls(), &file_users(),          &file_uses(),       &files(), &files_of_user(),
      &flows(), &flow_steps(), &memory_of_functions(), &memory_of_paths(), &notes(), &requests()};
  return all;
}

}  // namespace karst::answers
