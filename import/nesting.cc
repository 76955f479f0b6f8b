// SPDX-License-Identifier: MIT
// Calls are taken by their begin. A lane is a stack of those that have not ended yet.
#include "import/nesting.h"

#include <algorithm>

namespace karst::importing {
namespace {

class Lane {
 public:
  explicit Lane(std::vector<Step>& steps) : steps_(steps) {}

  /// Leaves what has ended by then.
  void go_to(const std::vector<Call>& calls, const Moment& now) {
    while (!open_.empty() && calls[open_.back()].end <= now) {
      steps_.push_back({Step::Kind::kLeave, calls[open_.back()].end.ns, open_.back()});
      open_.pop_back();
    }
  }
  bool has_room(const std::vector<Call>& calls, const Call& call) const {
    return open_.empty() || call.end <= calls[open_.back()].end;
  }
  void enter(const std::vector<Call>& calls, std::size_t number) {
    steps_.push_back({Step::Kind::kEnter, calls[number].begin.ns, number});
    open_.push_back(number);
  }
  /// Leaves all whose end is known.
  void finish(const std::vector<Call>& calls) { go_to(calls, {Call::kOpen - 1, UINT64_MAX}); }

 private:
  std::vector<Step>& steps_;
  std::vector<std::size_t> open_;
};

void sort(Thread& thread) {
  // At the same moment the longer one is the outer one; of two of the same length the first one.
  const auto before = [](const Call& a, const Call& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.end > b.end;
  };
  if (!std::is_sorted(thread.calls.begin(), thread.calls.end(), before))  // sorting takes memory
    std::stable_sort(thread.calls.begin(), thread.calls.end(), before);
  std::stable_sort(thread.notes.begin(), thread.notes.end(), [](const Note& a, const Note& b) { return a.at < b.at; });
}

}  // namespace

Lanes nest(Thread& thread) {
  sort(thread);
  Lanes nested;
  nested.lanes.reserve(Lanes::kMost);  // each Lane refers to one of them
  nested.lanes[0].reserve(2 * thread.calls.size() + thread.notes.size());
  std::vector<Lane> lanes{Lane(nested.lanes[0])};
  std::size_t note = 0;
  const auto take_notes = [&](const Moment& until) {
    for (; note < thread.notes.size() && thread.notes[note].at < until; ++note) {
      lanes[0].go_to(thread.calls, thread.notes[note].at);
      nested.lanes[0].push_back({Step::Kind::kNote, thread.notes[note].at.ns, note});
    }
  };
  for (std::size_t i = 0; i < thread.calls.size(); ++i) {
    const Call& call = thread.calls[i];
    take_notes(call.begin);
    const auto nests = [&](Lane& lane) {
      lane.go_to(thread.calls, call.begin);
      return lane.has_room(thread.calls, call);
    };
    auto lane = std::find_if(lanes.begin(), lanes.end(), nests);
    if (lane == lanes.end()) {
      if (lanes.size() == Lanes::kMost) {
        ++nested.without_lane;
        continue;
      }
      lanes.emplace_back(nested.lanes.emplace_back());
      lane = lanes.end() - 1;
    }
    lane->enter(thread.calls, i);
  }
  take_notes({INT64_MAX, UINT64_MAX});
  for (Lane& lane : lanes) lane.finish(thread.calls);
  return nested;
}

}  // namespace karst::importing
