#include "engine/api/rows.h"

#include <algorithm>
#include <string>
#include <variant>

namespace karst::engine {
namespace {

using answers::Field;
using answers::Type;

struct ValueWriter {
  Json& json;
  const TraceIndex& index;
  Type type;

  void operator()(std::monostate) const { json.null(); }
  void operator()(bool flag) const { json.value(flag); }
  void operator()(std::uint64_t number) const {
    if (type == Type::kId)
      json.value(std::to_string(number));
    else
      json.value(number);
  }
  void operator()(std::int64_t number) const { json.value(number); }
  void operator()(double number) const { json.value(number, 6); }
  void operator()(std::string_view text) const { json.value(text); }
  void operator()(const std::string& text) const { json.value(text); }
  void operator()(answers::FunctionRef ref) const {
    const auto& functions = index.functions().of_process(ref.process);
    const bool known = ref.function != 0 && ref.function < functions.size();
    json.value(known ? std::int64_t{functions[ref.function]} : std::int64_t{-1});
  }
  void operator()(answers::ThreadRef ref) const {
    const auto& threads = index.threads();
    const auto at = std::find_if(threads.begin(), threads.end(),
                                 [&](const ThreadIndex& thread) { return thread.thread == ref.thread; });
    json.value(ref.thread == nullptr || at == threads.end() ? std::int64_t{-1} : at - threads.begin());
  }
  void operator()(answers::ProcessRef ref) const { json.value(ref.process); }
};

}  // namespace

void write_rows(Json& json, const TraceIndex& index, const answers::Relation& relation,
                std::span<const void* const> rows) {
  for (const Field& field : relation.fields) {
    if (field.type == Type::kRows || rows.empty()) continue;
    json.key(field.key).open('[');
    for (const void* row : rows) std::visit(ValueWriter{json, index, field.type}, field.get(row));
    json.close(']');
  }
}

}  // namespace karst::engine
