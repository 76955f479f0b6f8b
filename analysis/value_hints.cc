// SPDX-License-Identifier: MIT
#include "analysis/value_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "format/values.h"

namespace karst::analysis {
namespace {

constexpr std::uint64_t kMostCalls = 100'000;          // of a path that are looked at
constexpr std::size_t kMostDifferent = 10'000;         // values of an argument; then they vary freely
constexpr std::uint64_t kLeastTypical = 5;             // values, to say what is usual
constexpr std::uint64_t kMostAlone = 33;               // one of so many values may occur once alone
constexpr std::uint64_t kMostOfFive = 4, kOfFive = 5;  // numbers that rise so often are counters
constexpr std::uint64_t kHalf = 2;

std::string words(const ValueHint& hint) {
  const auto said = [&](const std::string& value) { return hint.name + (hint.name == "returned" ? " " : "=") + value; };
  std::string text = said(hint.here);
  text += hint.calls > 1 ? fmt::format(" in the longest of {}", plural(hint.calls, "call")) : std::string(" here");
  const std::string_view whose = hint.below ? "calls within typical ones" : "typical calls";
  if (hint.times * kHalf >= hint.typical)
    return text + fmt::format("; {} in {} of {} {}", said(hint.commonest), count_text(hint.times),
                              count_text(hint.typical), whose);
  if (hint.numbers)
    return text + fmt::format("; {} to {}, median {}, in {} {}", hint.least, hint.most, hint.mid,
                              count_text(hint.typical), whose);
  return text + fmt::format("; never in {} {}", count_text(hint.typical), whose);
}

}  // namespace

void ValueSamples::add_typical(std::uint32_t path, std::uint32_t row) {
  if (calls_[path] < kMostCalls) add_typical(path, values_->named(*trace_, *thread_, row));
}

void ValueSamples::set_here(std::uint32_t path, std::uint32_t row) {
  set_here(path, values_->named(*trace_, *thread_, row));
}

void ValueSamples::add_typical(std::uint32_t path, const NamedValues& values) {
  ++calls_[path];
  for (const auto& [name, text] : values) {
    if (name == format::kCoroutineFrame) continue;  // which coroutine it was is no cause
    Usual& usual = usual_[{path, name}];
    if (usual.times.size() > kMostDifferent) continue;
    ++usual.count;
    const std::optional<double> number = number_in(text);
    if (number && usual.latest) {
      usual.rises += *number > *usual.latest ? 1 : 0;
      usual.falls += *number < *usual.latest ? 1 : 0;
    }
    usual.latest = number;
    ++usual.times[text];
  }
}

std::optional<ValueHint> ValueSamples::hint(const std::string& here, const Usual& usual) {
  if (here == "<optimized out>" || here == "<not shown>" || here == "<cut>") return {};
  if (usual.count < kLeastTypical || usual.times.size() > kMostDifferent || usual.times.contains(here)) return {};
  ValueHint hint;
  hint.here = here;
  hint.typical = usual.count;
  std::uint64_t alone = 0;
  std::vector<std::tuple<double, std::string, std::uint64_t>> numbers;
  for (const auto& [text, times] : usual.times) {
    alone += times == 1 ? 1 : 0;
    if (times > hint.times || (times == hint.times && text < hint.commonest)) {
      hint.commonest = text;
      hint.times = times;
    }
    if (const auto number = number_in(text)) numbers.emplace_back(*number, text, times);
  }
  bool is_other = alone * kMostAlone <= usual.count;
  const auto its = number_in(here);
  hint.numbers = its && numbers.size() == usual.times.size();
  if (hint.numbers) {
    std::sort(numbers.begin(), numbers.end());
    const double least = std::get<0>(numbers.front()), most = std::get<0>(numbers.back());
    const bool counts = std::max(usual.rises, usual.falls) * kOfFive >= (usual.count - 1) * kMostOfFive;
    const bool outside = *its >= most + (most - least) || *its <= least - (most - least);
    is_other = is_other || (outside && !counts);
    hint.least = std::get<1>(numbers.front());
    hint.most = std::get<1>(numbers.back());
    std::uint64_t before = 0;
    for (const auto& [number, text, times] : numbers) {
      if (before <= (usual.count - 1) / 2) hint.mid = text;
      before += times;
    }
  }
  return is_other ? std::optional(hint) : std::nullopt;
}

std::vector<ValueHint> ValueSamples::hints(std::uint32_t path, std::uint32_t function, bool below,
                                           std::uint64_t calls) const {
  std::vector<ValueHint> hints;
  const auto values = here_.find(path);
  if (values == here_.end()) return hints;
  for (const auto& [name, here] : values->second) {
    const auto usual = usual_.find({path, name});
    if (usual == usual_.end()) continue;
    if (auto found = hint(here, usual->second)) {
      found->function = function;
      found->below = below;
      found->name = name;
      found->calls = calls;
      found->words = words(*found);
      hints.push_back(std::move(*found));
    }
  }
  return hints;
}

}  // namespace karst::analysis
