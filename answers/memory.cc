// SPDX-License-Identifier: MIT
#include "answers/memory.h"

#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "words/path.h"

namespace karst::answers {
namespace {

using analysis::MemorySum;

/// To the next whole number: estimates have fractions.
std::uint64_t whole(double amount) { return amount <= 0 ? 0 : static_cast<std::uint64_t>(std::llround(amount)); }

Field amount(std::string key, Type type, std::string sentence, double MemorySum::*of, Look look = {}) {
  return field<MemoryRow>(
      std::move(key), type, std::move(sentence), [of](const MemoryRow& row) { return whole(row.sum.*of); },
      std::move(look));
}

/// How far an estimate may be off: 95 of 100 are within.
Field margin(std::string key, std::string sentence, double MemorySum::*variance) {
  return field<MemoryRow>(std::move(key), Type::kBytes, std::move(sentence),
                          [variance](const MemoryRow& row) { return whole(1.96 * std::sqrt(row.sum.*variance)); },
                          {.shown = Look::Shown::kAsked});
}

Relation memory_relation(std::string name, std::string one, Field called) {
  using enum Look::Shown;
  return {std::move(name),
          std::move(one),
          "A row for each " + called.key + " that took memory itself, by malloc, new and their like",
          {amount("bytes", Type::kBytes, "all that it took", &MemorySum::bytes, {.least_width = 10}),
           margin("bytes_margin", "how far that may be off, where allocations were sampled (95%)",
                  &MemorySum::bytes_variance),
           amount("allocations", Type::kCount, "how often it took some", &MemorySum::allocations,
                  {.title = "allocs", .rank = 2, .least_width = 11}),
           amount("living_bytes", Type::kBytes,
                  "what of it was not freed at the end: of the program, of --range or of --call",
                  &MemorySum::living_bytes, {.title = "living", .least_width = 10}),
           margin("living_margin", "how far that may be off", &MemorySum::living_variance),
           amount("living", Type::kCount, "allocations that were not freed", &MemorySum::living,
                  {.title = "living allocs", .rank = 6, .shown = kWide, .least_width = 11}),
           amount("peak_bytes", Type::kBytes, "what of it there was when most bytes were living at once",
                  &MemorySum::peak_bytes, {.title = "at peak", .rank = 3, .least_width = 10}),
           amount("short_lived", Type::kCount, "allocations that were freed by the thread as the next thing",
                  &MemorySum::short_lived, {.title = "short", .rank = 4, .least_width = 11}),
           amount("failed", Type::kCount, "times that there was no memory", &MemorySum::failed,
                  {.rank = 6, .shown = kWide, .least_width = 11}),
           amount("mapped_bytes", Type::kBytes, "bytes of mmap, brk and sbrk", &MemorySum::mapped_bytes,
                  {.title = "mapped", .rank = 6, .shown = kWide, .least_width = 10}),
           amount("living_mapped_bytes", Type::kBytes, "what of those was not given back at the end",
                  &MemorySum::mapped_living_bytes,
                  {.title = "living mapped", .rank = 6, .shown = kWide, .least_width = 10}),
           std::move(called)}};
}

std::string_view name_of_node(const analysis::Parts& parts, const analysis::MemoryUse& use, std::uint32_t node) {
  const std::uint32_t function = use.tree.nodes()[node].function;
  if (node == 0) return "(in no traced call)";
  if (function == columns::FlameTree::kOther) return "(more paths than can be told apart)";
  return parts.functions().functions()[function].name;
}

std::string path_of_node(const analysis::Parts& parts, const analysis::MemoryUse& use, std::uint32_t node) {
  if (node == 0) return std::string(name_of_node(parts, use, 0));
  std::vector<std::string> names;
  for (; node != 0; node = use.tree.nodes()[node].parent) names.emplace_back(name_of_node(parts, use, node));
  std::string text;
  for (const std::string& each : words::folded(std::move(names))) text += (text.empty() ? "" : " < ") + each;
  return text;
}

}  // namespace

std::vector<MemoryRow> memory_rows(const analysis::Parts& parts, const analysis::MemoryUse& use, bool by_path) {
  std::vector<MemoryRow> rows;
  std::unordered_map<std::uint32_t, std::size_t> of_function;
  for (std::uint32_t node = 0; node < use.sums.size(); ++node) {
    const MemorySum& sum = use.sums[node];
    if (sum.allocations == 0 && sum.failed == 0 && sum.mapped_bytes == 0) continue;
    if (by_path) {
      rows.push_back({path_of_node(parts, use, node), sum});
      continue;
    }
    const auto [at, fresh] = of_function.try_emplace(use.tree.nodes()[node].function, rows.size());
    if (fresh) rows.push_back({std::string(name_of_node(parts, use, node)), {}});
    rows[at->second].sum += sum;
  }
  return rows;
}

const Relation& memory_of_functions() {
  static const Relation relation = memory_relation(
      "memory_of_functions", "memory_of_function",
      field<MemoryRow>("function", Type::kText, "the innermost traced call that took it",
                       [](const MemoryRow& row) -> const std::string& { return row.name; }, {.is_name = true}));
  return relation;
}

const Relation& memory_of_paths() {
  static const Relation relation =
      memory_relation("memory_of_paths", "memory_of_path",
                      field<MemoryRow>("path", Type::kText, "the calls that led there, the innermost first",
                                       [](const MemoryRow& row) -> const std::string& { return row.name; }));
  return relation;
}

}  // namespace karst::answers
