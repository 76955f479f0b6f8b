// SPDX-License-Identifier: MIT
#include "import/edges.h"

#include <algorithm>

namespace karst::importing {
namespace {

constexpr std::size_t kMostLookedAt =
    4096;  // so many open calls are looked at for an end's function: its time has a bound

}  // namespace

std::uint64_t match_edges(std::vector<Edge>& edges, std::vector<Call>& calls) {
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  std::uint64_t without_begin = 0;
  std::vector<std::size_t> open;  // numbers of calls
  for (const Edge& edge : edges) {
    if (edge.begins) {
      open.push_back(calls.size());
      calls.push_back({edge.at, {Call::kOpen, 0}, edge.function.value_or(0), edge.text});
      continue;
    }
    const auto last = open.rend() - open.rbegin() > static_cast<std::ptrdiff_t>(kMostLookedAt)
                          ? open.rbegin() + static_cast<std::ptrdiff_t>(kMostLookedAt)
                          : open.rend();
    const auto begin = std::find_if(open.rbegin(), last, [&](std::size_t number) {
      return !edge.function || calls[number].function == *edge.function;
    });
    if (begin == last) {
      ++without_begin;
    } else {
      calls[*begin].end = edge.at;
      calls[*begin].tail = edge.tail;
      open.erase(std::next(begin).base());
    }
  }
  return without_begin;
}

}  // namespace karst::importing
