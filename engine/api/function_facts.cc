// SPDX-License-Identifier: MIT
#include "engine/api/function_facts.h"

#include "engine/protocol.h"
#include "format/trace.h"

namespace karst::engine {
namespace {

using answers::field;
using answers::list;
using answers::Relation;
using answers::rows;
using answers::Type;
using answers::UseRow;

template <typename Get>
answers::Field each_function(std::string key, Type type, std::string sentence, Get get) {
  return list<FunctionFacts>(std::move(key), type, std::move(sentence), [get](const FunctionFacts& r, const auto& use) {
    for (const std::uint32_t number : r.shown) use(get(r.all.functions()[number]));
  });
}

answers::Field numbers_of_functions(std::string key, std::string sentence,
                                    std::vector<std::int64_t> FunctionFacts::*of) {
  return list<FunctionFacts>(std::move(key), Type::kNumber, std::move(sentence),
                             [of](const FunctionFacts& r, const auto& use) {
                               for (const std::int64_t number : r.*of) use(number);
                             });
}

const Relation& sampled_functions_of_page() {
  using Row = reader::SampledFunction;
  static const Relation relation{
      "sampled_code",
      "sampled_code_fact",
      "A row for each function that samples saw",
      {field<Row>("name", Type::kText, "what it is called", [](const Row& r) -> const std::string& { return r.name; }),
       field<Row>("module", Type::kText, "that its code is in",
                  [](const Row& r) -> const std::string& { return r.module; }),
       field<Row>("file", Type::kText, "its source", [](const Row& r) -> const std::string& { return r.file; }),
       field<Row>("line", Type::kNumber, "where it begins there", [](const Row& r) { return r.line; })}};
  return relation;
}

}  // namespace

const Relation& function_facts() {
  using Row = FunctionFacts;
  static const Relation relation{
      "function_facts",
      "function_fact",
      "Functions that occur: columns",
      {field<Row>("count", Type::kCount, "of all functions", [](const Row& r) { return r.all.functions().size(); }),
       list<Row>("number", Type::kNumber, "what calls name them by",
                 [](const Row& r, const auto& use) {
                   for (const std::uint32_t number : r.shown) use(number);
                 }),
       each_function("name", Type::kText, "what they are called",
                     [](const FunctionInfo& f) { return std::string_view(f.name); }),
       numbers_of_functions("module", "in `modules`; -1: not known", &Row::module),
       numbers_of_functions("file", "in `files`; -1: not known", &Row::file),
       each_function("line", Type::kNumber, "where they begin there", [](const FunctionInfo& f) { return f.line; }),
       each_function("calls", Type::kCount, "how many there are of them",
                     [](const FunctionInfo& f) { return f.calls; }),
       list<Row>("colored", Type::kNumber, "numbers of zones that the program gave a colour",
                 [](const Row& r, const auto& use) {
                   for (const auto& [number, color] : r.colors) use(number);
                 }),
       list<Row>("colors", Type::kNumber, "of those: 0xrrggbb", [](const Row& r, const auto& use) {
         for (const auto& [number, color] : r.colors) use(color);
       })}};
  return relation;
}

const Relation& sample_facts() {
  using Row = reader::SampleLog;
  static const Relation relation{
      "sampled_infos",
      "sampled_info",
      "How code was sampled (`karst run --sample`)",
      {field<Row>("period", Type::kDuration, "CPU time that a sample stands for",
                  [](const Row& r) { return r.source.period_ns; }),
       field<Row>("samples", Type::kCount, "how many there are", [](const Row& r) { return r.samples.size(); }),
       field<Row>("lost", Type::kCount, "that the kernel left out", [](const Row& r) { return r.source.lost; }),
       rows<Row>("functions", "that they saw", sampled_functions_of_page(),
                 [](const Row& r, const UseRow& use) {
                   for (const reader::SampledFunction& function : r.functions) use(&function);
                 }),
       field<Row>("kernel", Type::kFlag, "whether time in the kernel is among them",
                  [](const Row& r) { return (r.source.flags & format::kSamplesKernel) != 0; })}};
  return relation;
}

}  // namespace karst::engine
