// SPDX-License-Identifier: MIT
// Rings of locks (analysis/holds.h): cycles in the graph whose nodes are locks and whose edges are orders.
//
// A cycle lies within a strongly connected component, so everything else is left out first. From each edge that is left
// the shortest way back is looked for, by depth-first searches of growing length that never go farther than the
// distance to where it began allows. With each edge a place is chosen, so that a way ends where its threads could not
// all be in their places at once: one lock keeps two of them apart, or there are fewer threads than edges.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/lock_orders.h"

namespace karst::analysis {
namespace {

constexpr std::size_t kMostRingSteps = 5'000'000;  // of a trace
constexpr std::size_t kMostStepsOfEdge = 100'000;  // so that one edge leaves some for the others
constexpr std::size_t kNoComponent = static_cast<std::size_t>(-1);

struct PlaceOfEdge {
  const LockPlace* place;
  std::vector<LockGuard> held;  // all locks, in order
};
struct OrderEdge {
  std::size_t to;
  std::vector<PlaceOfEdge> places;  // those where a thread waited to the end come first
  bool told;                        // in a ring, or an inversion
};
struct OrderNode {
  std::uint32_t lock;
  std::vector<std::size_t> edges;  // in Graph::edges
  std::vector<std::size_t> from;   // nodes
  std::size_t component;
};

/// Tarjan's algorithm, without recursion.
class LockComponents {
 public:
  explicit LockComponents(const std::vector<std::vector<std::size_t>>& next)
      : next_(next), component_(next.size(), kNoComponent), index_(next.size()), low_(next.size()) {
    for (std::size_t node = 0; node < next.size(); ++node)
      if (index_[node] == 0) visit(node);
  }
  /// kNoComponent: it is one of its own.
  std::size_t of(std::size_t node) const { return component_[node]; }

 private:
  void visit(std::size_t root) {
    std::vector<std::pair<std::size_t, std::size_t>> path{{root, 0}};  // node, how many of its edges were followed
    begin(root);
    while (!path.empty()) {
      const std::size_t node = path.back().first;
      if (path.back().second < next_[node].size()) {
        const std::size_t to = next_[node][path.back().second++];
        if (index_[to] == 0) {
          begin(to);
          path.emplace_back(to, 0);
        } else if (on_stack_.contains(to)) {
          low_[node] = std::min(low_[node], index_[to]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low_[path.back().first] = std::min(low_[path.back().first], low_[node]);
      if (low_[node] == index_[node]) end(node);
    }
  }
  void begin(std::size_t node) {
    index_[node] = low_[node] = ++last_;
    stack_.push_back(node);
    on_stack_.insert(node);
  }
  void end(std::size_t node) {
    const bool alone = stack_.back() == node;
    for (std::size_t of = node + 1; of != node;) {
      of = stack_.back();
      stack_.pop_back();
      on_stack_.erase(of);
      if (!alone) component_[of] = node;
    }
  }

  const std::vector<std::vector<std::size_t>>& next_;
  std::vector<std::size_t> component_;
  std::vector<std::size_t> index_, low_;  // 0: not visited
  std::vector<std::size_t> stack_;
  std::set<std::size_t> on_stack_;
  std::size_t last_ = 0;
};

/// Which thread is in which place, if each can be another one (Kuhn's matching); empty: there are too few threads.
class RingThreads {
 public:
  std::vector<std::size_t> assign(const std::vector<const PlaceOfEdge*>& places) {
    by_.clear();
    for (std::size_t i = 0; i < places.size(); ++i) {
      seen_.clear();
      if (!find(places, i)) return {};
    }
    std::vector<std::size_t> found(places.size());
    for (const auto& [thread, of] : by_) found[of.first] = of.second;
    return found;
  }

 private:
  bool find(const std::vector<const PlaceOfEdge*>& places, std::size_t i) {
    const auto& threads = places[i]->place->threads;
    for (std::size_t at = 0; at < threads.size(); ++at) {
      if (!seen_.insert(threads[at].first).second) continue;
      const auto taken = by_.find(threads[at].first);
      if (taken != by_.end() && !find(places, taken->second.first)) continue;
      by_[threads[at].first] = {i, at};
      return true;
    }
    return false;
  }
  std::map<const reader::Thread*, std::pair<std::size_t, std::size_t>> by_;  // the place, and which of its threads
  std::set<const reader::Thread*> seen_;
};

class RingSearch {
 public:
  RingSearch(const LockPlaces& places, const std::vector<Inversion>& inversions) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> told;
    for (const Inversion& inversion : inversions) {
      told.insert({inversion.a, inversion.b});
      told.insert({inversion.b, inversion.a});
    }
    std::map<std::uint32_t, std::size_t> nodes;
    const auto node_of = [&](std::uint32_t lock) {
      const auto [at, fresh] = nodes.try_emplace(lock, nodes_.size());
      if (fresh) nodes_.push_back({lock, {}, {}, kNoComponent});
      return at->second;
    };
    std::vector<std::vector<std::size_t>> next;
    for (const auto& [locks, of] : places) {
      const std::size_t from = node_of(locks.first), to = node_of(locks.second);
      next.resize(nodes_.size());
      next[from].push_back(to);
    }
    const LockComponents components(next);
    for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i].component = components.of(i);
    for (const auto& [locks, of] : places) {
      const std::size_t from = node_of(locks.first), to = node_of(locks.second);
      if (nodes_[from].component == kNoComponent || nodes_[from].component != nodes_[to].component) continue;
      add_edge(from, to, locks.first, of, told.contains(locks));
    }
  }

  std::vector<LockRing> find(bool& cut) {
    for (std::size_t from = 0; from < nodes_.size(); ++from) {
      if (nodes_[from].edges.empty()) continue;
      find_distances(from);
      for (const std::size_t edge : nodes_[from].edges)
        if (!edges_[edge].told) find_from(from, edge);
    }
    cut = cut_;
    return std::move(found_);
  }

 private:
  void add_edge(std::size_t from, std::size_t to, std::uint32_t lock, const std::vector<LockPlace>& places, bool told) {
    OrderEdge edge{to, {}, told};
    for (const LockPlace& place : places) {
      PlaceOfEdge of{&place, place.guards};
      const LockGuard first{lock, place.first_shared};
      of.held.insert(std::upper_bound(of.held.begin(), of.held.end(), first), first);
      edge.places.push_back(std::move(of));
    }
    std::stable_partition(edge.places.begin(), edge.places.end(),
                          [](const PlaceOfEdge& of) { return of.place->order.waits; });
    nodes_[from].edges.push_back(edges_.size());
    nodes_[to].from.push_back(from);
    edges_.push_back(std::move(edge));
  }

  /// How many edges it takes at least from each node, of the component, to `to`.
  void find_distances(std::size_t to) {
    distance_.clear();
    if (steps_ >= kMostRingSteps) return;
    distance_[to] = 0;
    std::vector<std::size_t> due{to};
    for (std::size_t i = 0; i < due.size(); ++i) {
      const std::size_t distance = distance_[due[i]] + 1;
      if (distance >= kMostInRing) break;
      for (const std::size_t from : nodes_[due[i]].from) {
        ++steps_;
        if (distance_.try_emplace(from, distance).second) due.push_back(from);
      }
    }
  }

  void find_from(std::size_t from, std::size_t edge) {
    if (steps_ >= kMostRingSteps) {
      cut_ = true;
      return;
    }
    if (!distance_.contains(edges_[edge].to)) return;
    const std::size_t least = std::max<std::size_t>(3, distance_[edges_[edge].to] + 1);
    most_steps_ = steps_ + kMostStepsOfEdge;
    for (length_ = least; length_ <= kMostInRing; ++length_) {
      path_ = {from};
      if (go(edge)) return;
    }
  }

  /// Along an edge, and on. True: the search has ended.
  bool go(std::size_t along) {
    const OrderEdge& edge = edges_[along];
    const bool closes = edge.to == path_.front();
    if (closes != (path_.size() == length_)) return false;
    if (!closes) {
      const auto distance = distance_.find(edge.to);
      if (distance == distance_.end() || path_.size() + distance->second > length_) return false;
      if (std::find(path_.begin(), path_.end(), edge.to) != path_.end()) return false;
    }
    for (const PlaceOfEdge& of : edge.places) {
      steps_ += 1 + chosen_.size();  // what it is held against
      if (steps_ > most_steps_) {
        cut_ = true;
        return true;
      }
      if (!fits(of, closes)) continue;
      chosen_.push_back(&of);
      along_.push_back(along);
      bool ended = false;
      const std::vector<std::size_t> threads = threads_.assign(chosen_);
      if (!threads.empty() && closes) {
        tell(threads);
        ended = true;
      } else if (!threads.empty()) {
        path_.push_back(edge.to);
        for (const std::size_t next : nodes_[edge.to].edges)
          if (!ended) ended = go(next);
        path_.pop_back();
      }
      chosen_.pop_back();
      along_.pop_back();
      if (ended) return true;
    }
    return false;
  }

  bool fits(const PlaceOfEdge& of, bool closes) const {
    if (!chosen_.empty() && chosen_.back()->place->second_shared && of.place->first_shared) return false;
    if (closes && of.place->second_shared && chosen_.front()->place->first_shared) return false;
    return std::none_of(chosen_.begin(), chosen_.end(),
                        [&](const PlaceOfEdge* other) { return are_kept_apart(other->held, of.held); });
  }

  void tell(const std::vector<std::size_t>& threads) {
    LockRing ring;
    for (std::size_t i = 0; i < path_.size(); ++i) {
      ring.locks.push_back(nodes_[path_[i]].lock);
      LockOrder order = chosen_[i]->place->order;
      std::tie(order.thread, order.ticks) = chosen_[i]->place->threads[threads[i]];
      ring.orders.push_back(order);
      edges_[along_[i]].told = true;
    }
    found_.push_back(std::move(ring));
  }

  std::vector<OrderNode> nodes_;
  std::vector<OrderEdge> edges_;
  std::map<std::size_t, std::size_t> distance_;  // by node, to where the search began
  std::vector<std::size_t> path_;                // nodes
  std::vector<std::size_t> along_;               // edges
  std::vector<const PlaceOfEdge*> chosen_;       // by edge
  RingThreads threads_;
  std::size_t length_ = 0, steps_ = 0, most_steps_ = 0;
  bool cut_ = false;
  std::vector<LockRing> found_;
};

}  // namespace

std::vector<LockRing> rings_of(const LockPlaces& places, const std::vector<Inversion>& inversions, bool& cut) {
  return RingSearch(places, inversions).find(cut);
}

}  // namespace karst::analysis
