// SPDX-License-Identifier: MIT
#include "engine/api/align.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/index/scope.h"

namespace karst::engine {
namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// Beyond this many comparisons the best pairs are not looked for: the next fitting ones are taken.
constexpr std::size_t kMostCells = std::size_t{4} << 20U;
constexpr std::size_t kLookAhead = 64;
// So short a call counts for something, so that of equal ones all are paired.
constexpr double kLeastWeight = 0.5;

struct Child {
  std::uint32_t row;
  AlignItem item;
};

/// What tracing took of all calls of the thread, in ticks.
std::uint64_t cost_of_all(const CallColumns& calls) {
  std::uint64_t cost = 0;
  for (std::uint32_t row = 0; row < calls.size(); row = subtree_end(calls, row))
    cost += calls.duration[row] - calls.time(row);
  return cost;
}

std::vector<Child> children_of(const AlignSide& side, std::uint32_t row, Work* work) {
  const CallColumns& calls = side.calls;
  const bool whole = row == reader::kNoParent;
  const auto end = whole ? static_cast<std::uint32_t>(calls.size()) : subtree_end(calls, row);
  std::vector<Child> children;
  for (std::uint32_t at = whole ? 0 : row + 1; at < end; at = subtree_end(calls, at)) {
    if (children.size() % kWorkStep == kWorkStep - 1 && !go_on(work, kWorkStep)) break;
    const std::uint32_t name = (*side.names)[side.index->function_of(*side.thread, at)];
    children.push_back({at, {name, side.index->to_ns(static_cast<double>(calls.duration[at]))}});
  }
  return children;
}

Pairs best_pairs(const std::vector<AlignItem>& a, const std::vector<AlignItem>& b) {
  // Of very long lists the beginnings that are the same, which is most of it when little has changed, go without
  // looking for better pairs.
  std::uint32_t front = 0;
  if (!b.empty() && a.size() > kMostCells / b.size()) {
    while (front < a.size() && front < b.size() && a[front].name == b[front].name) ++front;
  }
  Pairs pairs;
  for (std::uint32_t i = 0; i < front; ++i) pairs.emplace_back(i, i);
  const std::size_t rows = a.size() - front;
  const std::size_t columns = b.size() - front;
  if (rows == 0 || columns == 0) return pairs;
  if (rows > kMostCells / columns) {
    for (std::size_t i = front, j = front; i < a.size(); ++i) {
      const std::size_t limit = std::min(b.size(), j + kLookAhead);
      const auto at =
          std::find_if(b.begin() + static_cast<std::ptrdiff_t>(j), b.begin() + static_cast<std::ptrdiff_t>(limit),
                       [&](const AlignItem& item) { return item.name == a[i].name; });
      const auto found = static_cast<std::size_t>(at - b.begin());
      if (found == limit) continue;
      pairs.emplace_back(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(found));
      j = found + 1;
    }
    return pairs;
  }
  // best[j]: the most time in common of what begins at (i, j); from the end, so that pairs come out in order.
  enum Step : std::uint8_t { kPair, kSkipA, kSkipB };
  std::vector<Step> steps(rows * columns);
  std::vector<double> best(columns + 1), below(columns + 1);
  for (std::size_t i = rows; i-- > 0;) {
    std::swap(best, below);
    best[columns] = 0;
    for (std::size_t j = columns; j-- > 0;) {
      const AlignItem& x = a[front + i];
      const AlignItem& y = b[front + j];
      double most = below[j];
      Step step = kSkipA;
      if (best[j + 1] > most) {
        most = best[j + 1];
        step = kSkipB;
      }
      if (x.name == y.name) {
        const double both = below[j + 1] + std::max(std::min(x.duration, y.duration), kLeastWeight);
        if (both >= most) {
          most = both;
          step = kPair;
        }
      }
      best[j] = most;
      steps[i * columns + j] = step;
    }
  }
  for (std::size_t i = 0, j = 0; i < rows && j < columns;) {
    const Step step = steps[i * columns + j];
    if (step == kPair) pairs.emplace_back(static_cast<std::uint32_t>(front + i), static_cast<std::uint32_t>(front + j));
    if (step != kSkipB) ++i;
    if (step != kSkipA) ++j;
  }
  return pairs;
}

// Long calls of `a` that have no partner take the first of the same name between the same neighbours in `b`. Pairs are
// of (a, b) and in order.
Pairs pair_rest(const std::vector<Child>& a, const std::vector<Child>& b, const std::vector<std::uint32_t>& long_a,
                const Pairs& pairs) {
  Pairs result;
  std::size_t next = 0;       // pair
  std::uint32_t from = 0;     // in b
  std::size_t candidate = 0;  // in long_a
  const auto between = [&](std::uint32_t until_a, std::uint32_t until_b) {
    for (; candidate < long_a.size() && long_a[candidate] < until_a; ++candidate) {
      const std::uint32_t i = long_a[candidate];
      for (std::uint32_t j = from; j < until_b; ++j) {
        if (b[j].item.name != a[i].item.name) continue;
        result.emplace_back(i, j);
        from = j + 1;
        break;
      }
    }
  };
  for (; next < pairs.size(); ++next) {
    between(pairs[next].first, pairs[next].second);
    while (candidate < long_a.size() && long_a[candidate] <= pairs[next].first) ++candidate;
    result.push_back(pairs[next]);
    from = pairs[next].second + 1;
  }
  between(std::numeric_limits<std::uint32_t>::max(), static_cast<std::uint32_t>(b.size()));
  return result;
}

Pairs turned(Pairs pairs) {
  for (auto& [a, b] : pairs) std::swap(a, b);
  return pairs;
}

class Aligner {
 public:
  Aligner(const AlignSide& a, const AlignSide& b, Work* work) : sides_{a, b}, work_(work) {}

  Alignment run(double share) {
    AlignedCall root;
    double longest = 0;
    for (int side = 0; side < 2; ++side) {
      const ThreadIndex& thread = *sides_[side].thread;
      root.row[side] = sides_[side].row;
      root.has[side] = true;
      const CallColumns& calls = sides_[side].calls;
      const bool whole = root.row[side] == reader::kNoParent;
      start_[side] = whole ? thread.first_ticks : calls.begin[root.row[side]];
      const std::uint64_t end = whole ? std::max(thread.last_ticks, start_[side]) : calls.end(root.row[side]);
      const std::uint64_t ticks = end - start_[side];
      const std::uint64_t took = whole ? ticks - std::min(ticks, cost_of_all(calls)) : calls.time(root.row[side]);
      root.duration[side] = sides_[side].index->to_ns(static_cast<double>(ticks));
      root.took[side] = sides_[side].index->to_ns(static_cast<double>(took));
      longest = std::max(longest, root.duration[side]);
      if (!whole) root.name = (*sides_[side].names)[sides_[side].index->function_of(thread, root.row[side])];
    }
    least_ = longest * share;
    result_.calls.push_back(root);
    depth_.push_back(0);
    for (std::size_t i = 0; i < result_.calls.size() && !is_stopped(work_); ++i) expand(i);
    return std::move(result_);
  }

 private:
  void expand(std::size_t parent) {
    std::vector<Child> children[2];
    std::vector<std::uint32_t> shown[2];  // those long enough
    for (int side = 0; side < 2; ++side) {
      if (!result_.calls[parent].has[side]) continue;
      children[side] = children_of(sides_[side], result_.calls[parent].row[side], work_);
      for (std::uint32_t i = 0; i < children[side].size(); ++i) {
        if (children[side][i].item.duration >= least_) shown[side].push_back(i);
      }
    }
    if (shown[0].empty() && shown[1].empty()) return;
    if (depth_[parent] >= Alignment::kMostDepth) {
      result_.truncated = true;
      return;
    }
    Pairs pairs;
    {
      std::vector<AlignItem> items[2];
      for (int side = 0; side < 2; ++side) {
        for (const std::uint32_t i : shown[side]) items[side].push_back(children[side][i].item);
      }
      for (const auto& [i, j] : best_pairs(items[0], items[1])) pairs.emplace_back(shown[0][i], shown[1][j]);
    }
    pairs = pair_rest(children[0], children[1], shown[0], pairs);
    pairs = turned(pair_rest(children[1], children[0], shown[1], turned(std::move(pairs))));

    std::size_t next[2] = {0, 0};  // in shown
    const auto alone_until = [&](int side, std::uint32_t until) {
      for (; next[side] < shown[side].size() && shown[side][next[side]] < until; ++next[side]) {
        const Child* one[2] = {nullptr, nullptr};
        one[side] = &children[side][shown[side][next[side]]];
        add(parent, one);
      }
    };
    for (const auto& [i, j] : pairs) {
      alone_until(0, i);
      alone_until(1, j);
      if (next[0] < shown[0].size() && shown[0][next[0]] == i) ++next[0];
      if (next[1] < shown[1].size() && shown[1][next[1]] == j) ++next[1];
      const Child* both[2] = {&children[0][i], &children[1][j]};
      add(parent, both);
    }
    alone_until(0, std::numeric_limits<std::uint32_t>::max());
    alone_until(1, std::numeric_limits<std::uint32_t>::max());
  }

  void add(std::size_t parent, const Child* const (&of)[2]) {
    if (result_.calls.size() >= Alignment::kMostCalls) {
      result_.truncated = true;
      return;
    }
    AlignedCall call;
    call.parent = static_cast<std::int64_t>(parent);
    for (int side = 0; side < 2; ++side) {
      if (of[side] == nullptr) continue;
      call.has[side] = true;
      call.row[side] = of[side]->row;
      call.name = of[side]->item.name;
      call.duration[side] = of[side]->item.duration;
      const CallColumns& calls = sides_[side].calls;
      call.took[side] = sides_[side].index->to_ns(static_cast<double>(calls.time(of[side]->row)));
      const std::uint64_t begin = calls.begin[of[side]->row];
      call.begin[side] = sides_[side].index->to_ns(static_cast<double>(begin - std::min(begin, start_[side])));
    }
    result_.calls.push_back(call);
    depth_.push_back(depth_[parent] + 1);
  }

  const AlignSide sides_[2];
  Work* const work_;
  std::uint64_t start_[2] = {0, 0};
  double least_ = 0;
  Alignment result_;
  std::vector<std::uint32_t> depth_;
};

}  // namespace

std::vector<std::pair<std::uint32_t, std::uint32_t>> pair_up(const std::vector<AlignItem>& a,
                                                             const std::vector<AlignItem>& b) {
  return best_pairs(a, b);
}

Alignment align(const AlignSide& a, const AlignSide& b, double share, Work* work) {
  return Aligner(a, b, work).run(share);
}

}  // namespace karst::engine
