#include "answers/relation.h"

#include <algorithm>

#include "analysis/selection.h"

namespace karst::answers {

std::string name_for_programs(const std::string& key, Type type) {
  switch (type) {
    case Type::kTime:
    case Type::kDuration:
      return key + "_ns";
    case Type::kThread:
      return key == "thread" ? "tid" : key + "_tid";
    case Type::kProcess:
      return key == "process" ? "pid" : key + "_pid";
    default:
      return key;
  }
}

const Field* Relation::find(std::string_view key) const {
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
  return at == fields.end() ? nullptr : &*at;
}

bool sorts_upwards(Type type) {
  switch (type) {
    case Type::kDuration:
    case Type::kBytes:
    case Type::kCount:
    case Type::kFlag:
      return false;
    default:
      return true;
  }
}

Times::Times(const reader::Trace& trace) : trace_(&trace), start_(analysis::first_ticks(trace)) {}

}  // namespace karst::answers
