// SPDX-License-Identifier: MIT
// Questions about two sets of calls.
#include "engine/api/compare.h"

#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/api/align.h"
#include "engine/api/api.h"
#include "engine/api/question.h"
#include "engine/api/times.h"

namespace karst::engine {

std::vector<std::uint32_t> common_names(const TraceIndex& a, const TraceIndex& b, std::vector<std::string>& extra) {
  const auto& functions = a.functions().functions();
  std::vector<std::uint32_t> number_of(b.functions().functions().size());
  if (&a == &b) {
    std::iota(number_of.begin(), number_of.end(), 0U);
    return number_of;
  }
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t i = 0; i < functions.size(); ++i) {
    if (functions[i].occurs) by_name.emplace(functions[i].name, i);
  }
  for (std::uint32_t i = 0; i < number_of.size(); ++i) {
    if (!b.functions().functions()[i].occurs) continue;
    const std::string& name = b.functions().functions()[i].name;
    const auto next = static_cast<std::uint32_t>(functions.size() + extra.size());
    const auto [at, fresh] = by_name.emplace(name, next);
    if (fresh) extra.push_back(name);
    number_of[i] = at->second;
  }
  return number_of;
}

Reply Api::align(const Question& question) {
  const Question second = question.second();
  const double share = question.number("share", 0.0005);
  if (!(share >= 0.00001) || share > 1) question.complain("share must lie between 0.00001 and 1");
  AlignSide sides[2];
  std::uint64_t threads[2] = {0, 0};
  for (int side = 0; side < 2; ++side) {
    const Question& of = side == 0 ? question : second;
    sides[side].index = &of.index();
    threads[side] = of.whole("thread", 0);
    if (threads[side] >= of.index().threads().size()) {
      of.complain("there is no thread " + std::to_string(threads[side]));
      continue;
    }
    sides[side].thread = &of.index().threads()[threads[side]];
    if (!of.has("index")) continue;  // all of the thread
    if (const auto call = of.call()) sides[side].row = call->row;
  }
  if (!second.error().empty()) question.complain("the second set of calls: " + second.error());
  if (!question.error().empty()) return {};
  std::vector<std::string> extra;
  const std::vector<std::uint32_t> names_of[2] = {common_names(*sides[0].index, *sides[0].index, extra),
                                                  common_names(*sides[0].index, *sides[1].index, extra)};
  const auto cost = cost_beside(*sides[0].index, sides[1].index);
  ThreadTimes times[2] = {{*sides[0].index, question.is_raw(), cost}, {*sides[1].index, question.is_raw(), cost}};
  for (int side = 0; side < 2; ++side) {
    AlignSide& of = sides[side];
    of.names = &names_of[side];
    of.calls = of.row == reader::kNoParent ? times[side].of(*of.thread) : times[side].within(*of.thread, of.row);
  }
  const Alignment found = engine::align(sides[0], sides[1], share, question.work());

  Json json;
  json.open('{').field("truncated", found.truncated).field("thread", threads[0]).field("thread_b", threads[1]);
  json.key("nodes").open('{');
  const auto& calls = found.calls;
  json.list("parent", calls, [](const AlignedCall& call) { return call.parent; });
  const bool whole = sides[0].row == reader::kNoParent && sides[1].row == reader::kNoParent;
  json.list("function", calls, [&](const AlignedCall& call) {
    return call.parent < 0 && whole ? std::int64_t{-1} : std::int64_t{call.name};
  });
  for (int side = 0; side < 2; ++side) {
    const std::string suffix = side == 0 ? "" : "_b";
    // -1: not there; the root of a whole thread is there, and has no row.
    json.list("index" + suffix, calls, [&](const AlignedCall& call) {
      return call.row[side] == reader::kNoParent ? std::int64_t{-1} : std::int64_t{call.row[side]};
    });
    json.list("begin" + suffix, calls, [&](const AlignedCall& call) { return call.begin[side]; });
    json.list("duration" + suffix, calls, [&](const AlignedCall& call) { return call.duration[side]; });
    json.list("took" + suffix, calls, [&](const AlignedCall& call) { return call.took[side]; });
    json.list("has" + suffix, calls, [&](const AlignedCall& call) { return call.has[side]; });
  }
  json.close('}').list("extra_functions", extra, [](const std::string& name) { return std::string_view(name); });
  json.close('}');
  Reply reply;
  reply.body = json.take();
  return reply;
}

}  // namespace karst::engine
