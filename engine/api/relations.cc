#include "engine/api/relations.h"

#include <algorithm>

#include "engine/api/explain.h"
#include "engine/api/findings.h"
#include "engine/api/flows.h"
#include "engine/api/outliers.h"
#include "engine/api/requests.h"

namespace karst::engine {
namespace {

void add(std::vector<const answers::Relation*>& all, const answers::Relation& relation) {
  if (std::find(all.begin(), all.end(), &relation) != all.end()) return;
  for (const answers::Field& field : relation.fields)
    if (field.rows != nullptr) add(all, *field.rows);
  all.push_back(&relation);
}

std::vector<const answers::Relation*> with_inner(std::initializer_list<const answers::Relation*> answers) {
  std::vector<const answers::Relation*> all;
  for (const answers::Relation* relation : answers) add(all, *relation);
  return all;
}

}  // namespace

const std::vector<const answers::Relation*>& relations_of_page() {
  static const std::vector<const answers::Relation*> all =
      with_inner({&request_answers(), &slow_answers(), &explanation_answers(), &finding_answers(), &flow_answers()});
  return all;
}

}  // namespace karst::engine
