// SPDX-License-Identifier: MIT
#include "columns/flame.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "columns/pair_hash.h"
#include "columns/settle.h"

namespace karst::columns {
namespace {

constexpr std::size_t kFirstTable = 1024;
constexpr std::size_t kMostShown = 50'000;  // nodes of a view; what is left then is summed

}  // namespace

FlameTree::FlameTree() : table_(kFirstTable) {
  nodes_.push_back({});
  nodes_.back().function = kRoot;
}

std::uint32_t FlameTree::lookup(std::uint32_t parent, std::uint32_t function) const {
  if (nodes_[parent].children <= kFewChildren) {
    for (std::uint32_t node = nodes_[parent].first_child; node != 0; node = nodes_[node].next_sibling) {
      if (nodes_[node].function == function) return node;
    }
    return kRoot;
  }
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = pair_hash(parent, function) & mask;; at = (at + 1) & mask) {
    const std::uint32_t node = table_[at];
    if (node == 0) return kRoot;
    if (nodes_[node].parent == parent && nodes_[node].function == function) return node;
  }
}

// Puts a node into the table, which has room.
void FlameTree::insert(std::uint32_t node) {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = pair_hash(nodes_[node].parent, nodes_[node].function) & mask;
  while (table_[at] != 0) at = (at + 1) & mask;
  table_[at] = node;
}

std::uint32_t FlameTree::child(std::uint32_t parent, std::uint32_t function) {
  // Nodes are in the order of their first calls, so where calls go as they went before this is the node behind the last
  // one. To look there waits for no other memory, as the way along the siblings does.
  const std::uint32_t next = latest_ + 1;
  const bool again = next < nodes_.size() && nodes_[next].parent == parent && nodes_[next].function == function;
  return latest_ = again ? next : find_or_make(parent, function);
}

std::uint32_t FlameTree::find_or_make(std::uint32_t parent, std::uint32_t function) {
  // What is below the sum of everything else belongs to it.
  if (nodes_[parent].function == kOther) return parent;
  if (const std::uint32_t known = lookup(parent, function); known != kRoot) return known;
  if (nodes_.size() >= kMaxNodes && function != kOther) {
    truncated_ = true;
    // One such node a path: at most as many again.
    return find_or_make(parent, kOther);
  }
  const auto fresh = static_cast<std::uint32_t>(nodes_.size());
  if (nodes_.size() == nodes_.capacity()) nodes_.reserve(nodes_.size() + std::max<std::size_t>(64, nodes_.size() / 2));
  FlameNode& above = nodes_[parent];
  FlameNode node;
  node.parent = parent;
  node.function = function;
  node.next_sibling = above.first_child;
  above.first_child = fresh;
  const std::uint32_t children = ++above.children;
  nodes_.push_back(node);
  if (children <= kFewChildren) return fresh;
  const std::size_t more = children == kFewChildren + 1 ? children : 1;
  if ((in_table_ + more) * 2 > table_.size()) {
    std::vector<std::uint32_t> old(table_.size() * 2);
    old.swap(table_);
    for (const std::uint32_t entry : old) {
      if (entry != 0) insert(entry);
    }
  }
  in_table_ += more;
  if (more == 1) {
    insert(fresh);
  } else {
    for (std::uint32_t each = fresh; each != 0; each = nodes_[each].next_sibling) insert(each);
  }
  return fresh;
}

void FlameTree::add(const Scope::Part& part, std::uint32_t function, TimeOf what) {
  struct Frame {
    std::uint32_t row;
    std::uint32_t node;
    bool inside;  // of a subtree that is wanted
  };
  const CallColumns& calls = part.thread->calls;
  std::vector<Frame> stack;
  std::size_t begin_hint = 0;
  std::size_t end_hint = 0;
  auto open = part.open.begin();
  each_row(part.rows, [&](std::uint32_t row) {
    const std::uint32_t parent = calls.parent[row];
    const bool is_open = open != part.open.end() && *open == row;
    if (is_open) ++open;
    while (!stack.empty() && stack.back().row != parent) stack.pop_back();
    const std::uint32_t of = part.function(row);
    const bool below = !stack.empty() && stack.back().inside;
    if (!below && function != kNoFunction && of != function) {
      stack.push_back({row, 0, false});
      return;
    }
    const std::uint32_t above = below ? stack.back().node : 0;
    const std::uint32_t node = child(above, of);
    if (is_open) {
      stack.push_back({row, node, true});
      return;
    }
    const std::uint64_t inside =
        what == TimeOf::kAll ? part.time_of(row) : part_of(part.states_of(row, begin_hint, end_hint), what);
    FlameNode::Side& mine = nodes_[node].side[0];
    // A call that was summed into its caller's node does not add to the time of that.
    if (node != above) mine.total += inside;
    mine.self += inside;
    if (above != 0) nodes_[above].side[0].self -= inside;
    const std::uint64_t counted = part.counts(row) ? 1 : 0;
    mine.calls += counted;
    nodes_[0].side[0].calls += counted;
    if (above == 0) nodes_[0].side[0].total += inside;
    stack.push_back({row, node, true});
  });
}

void FlameTree::weigh(const std::vector<std::uint64_t>& self, const std::vector<std::uint64_t>& calls) {
  for (std::size_t i = nodes_.size(); i != 0; --i) {  // children come behind their parents
    FlameNode& node = nodes_[i - 1];
    FlameNode::Side& side = node.side[0];
    side.self = self[i - 1];
    side.calls += calls[i - 1];
    side.total += side.self;
    if (i == 1) break;
    nodes_[node.parent].side[0].total += side.total;
    nodes_[0].side[0].calls += side.calls;  // of all
  }
}

void FlameTree::merge(const FlameTree& other, const std::vector<std::uint32_t>* number_of, bool as_second) {
  std::vector<std::uint32_t> here(other.nodes_.size());
  truncated_ = truncated_ || other.truncated_;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const FlameNode& from = other.nodes_[i];
    const std::uint32_t parent = here[from.parent];
    const bool plain = number_of == nullptr || from.function >= kOther;
    here[i] = i == 0 ? 0 : child(parent, plain ? from.function : (*number_of)[from.function]);
    for (int side = 0; side < 2; ++side) {
      FlameNode::Side& to = nodes_[here[i]].side[as_second ? 1 : side];
      if (i == 0 || here[i] != parent) to.total += from.side[side].total;
      to.self += from.side[side].self;
      to.calls += from.side[side].calls;
    }
  }
}

std::uint32_t FlameTree::find(const std::vector<std::uint32_t>& path) const {
  std::uint32_t node = 0;
  for (const std::uint32_t function : path) {
    node = lookup(node, function);
    if (node == kRoot) break;
  }
  return node;
}

FlameTree FlameTree::inverted(const Work* work) const {
  FlameTree result;
  result.truncated_ = truncated_;
  // Each node walks up its path; that of a recursion a million calls deep would take as many steps for each of them.
  const std::size_t most_callers = std::clamp<std::size_t>((std::size_t{1} << 27U) / nodes_.size(), 32, 512);
  for (std::uint32_t from = 1; from < nodes_.size() && !is_stopped(work); ++from) {
    const FlameNode& leaf = nodes_[from];
    if (leaf.side[0].self == 0 && leaf.side[1].self == 0 && leaf.side[0].calls == 0 && leaf.side[1].calls == 0)
      continue;
    std::uint32_t node = 0;
    const auto add = [&](bool fresh, bool last) {
      for (int side = 0; side < 2; ++side) {
        FlameNode::Side& to = result.nodes_[node].side[side];
        if (fresh) {
          to.total += leaf.side[side].self;
          to.calls += leaf.side[side].calls;
        }
        if (last) to.self += leaf.side[side].self;
      }
    };
    add(true, false);
    std::size_t steps = 0;
    for (std::uint32_t at = from; at != 0; at = nodes_[at].parent) {
      const std::uint32_t above = node;
      node = result.child(above, steps++ == most_callers ? kOther : nodes_[at].function);
      add(node != above, nodes_[at].parent == 0);
      // The rest of the way is in this node.
      if (result.nodes_[node].function == kOther && nodes_[at].parent != 0) {
        add(false, true);
        break;
      }
    }
  }
  return result;
}

FlameTree FlameTree::weighed(const std::vector<bool>* wanted, bool by_calls) const {
  const auto is_wanted = [&](const FlameNode& node) {
    if (wanted == nullptr) return node.function != kRoot;
    return node.function < wanted->size() && (*wanted)[node.function];
  };
  // Which nodes a wanted one is at or below: children come behind their parents.
  std::vector<bool> leads(nodes_.size());
  for (std::size_t i = nodes_.size() - 1; i > 0; --i) {
    if (is_wanted(nodes_[i])) leads[i] = true;
    if (leads[i]) leads[nodes_[i].parent] = true;
  }
  FlameTree result;
  result.truncated_ = truncated_;
  std::vector<std::uint32_t> here(nodes_.size());
  for (std::uint32_t i = 1; i < nodes_.size(); ++i) {
    if (!leads[i]) continue;
    here[i] = result.child(here[nodes_[i].parent], nodes_[i].function);
    if (!is_wanted(nodes_[i])) continue;
    const FlameNode::Side& from = nodes_[i].side[0];
    FlameNode::Side& to = result.nodes_[here[i]].side[0];
    to.self += by_calls ? from.calls : from.self;
    to.calls += from.calls;
    result.nodes_[0].side[0].calls += from.calls;
  }
  for (std::size_t i = result.nodes_.size() - 1; i > 0; --i) {
    FlameNode& node = result.nodes_[i];
    node.side[0].total += node.side[0].self;
    result.nodes_[node.parent].side[0].total += node.side[0].total;
  }
  return result;
}

// In the order of their paths, whichever threads' calls came first: what is rounded goes from one to the next.
std::vector<std::uint32_t> FlameTree::by_path() const {
  std::vector<std::uint32_t> order, todo = {0};
  order.reserve(nodes_.size() - 1);
  while (!todo.empty()) {
    const std::uint32_t node = todo.back();
    todo.pop_back();
    if (node != 0) order.push_back(node);
    const auto first = static_cast<std::ptrdiff_t>(todo.size());
    for (std::uint32_t child = nodes_[node].first_child; child != 0; child = nodes_[child].next_sibling)
      todo.push_back(child);
    std::sort(todo.begin() + first, todo.end(),
              [&](std::uint32_t a, std::uint32_t b) { return nodes_[a].function < nodes_[b].function; });
  }
  return order;
}

void FlameTree::settle() {
  const auto is_missing = [](const FlameNode& node) { return static_cast<std::int64_t>(node.side[0].self) < 0; };
  if (std::none_of(nodes_.begin() + 1, nodes_.end(), is_missing)) return;  // the root has nothing of its own
  const std::vector<std::uint32_t> order = by_path();
  columns::settle(
      order.size(), [&](std::size_t i) -> std::uint64_t& { return nodes_[order[i]].side[0].self; },
      [&](std::size_t i) { return nodes_[order[i]].function; });
  for (FlameNode& node : nodes_) node.side[0].total = node.side[0].self;
  for (std::size_t i = nodes_.size() - 1; i > 0; --i) nodes_[nodes_[i].parent].side[0].total += nodes_[i].side[0].total;
}

void FlameTree::give(std::uint32_t node, std::uint32_t below, std::uint64_t weight) {
  if (node == below) return;
  nodes_[below].side[0].self += weight;
  for (std::uint32_t at = below; at != node; at = nodes_[at].parent) nodes_[at].side[0].total += weight;
  if (node == 0)
    nodes_[0].side[0].total += weight;
  else
    nodes_[node].side[0].self -= weight;
}

FlameTree flame(const Scope& scope, std::uint32_t function, TimeOf what) {
  // A tree for each worker, whichever threads it works on: merging costs as much as many calls.
  std::vector<FlameTree> by_worker(scope.workers.count);
  expect(scope.work, scope.rows());
  scope.workers.run(scope.parts.size(), [&](std::size_t i, std::size_t worker) {
    if (!scope.parts[i].rows.empty()) by_worker[worker].add(scope.parts[i], function, what);
  });
  FlameTree tree = std::move(by_worker.front());
  for (std::size_t worker = 1; worker < by_worker.size() && !is_stopped(scope.work); ++worker)
    tree.merge(by_worker[worker]);
  tree.settle();
  return tree;
}

FlameView prune(const FlameTree& tree, std::uint32_t root, double share) {
  const auto& nodes = tree.nodes();
  const auto total = [&](std::uint32_t node, int side) { return nodes[node].side[side].total; };
  const auto least = [&](int side) {
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(share * static_cast<double>(total(root, side))));
  };
  const std::uint64_t least_of[2] = {least(0), least(1)};
  const auto shown = [&](std::uint32_t node) {
    return nodes[node].function != FlameTree::kOther &&
           (total(node, 0) >= least_of[0] || total(node, 1) >= least_of[1]);
  };
  // Children by parent: counted, then filled. Nodes outside the root's subtree are left out by going down from it.
  std::vector<std::uint32_t> first(nodes.size() + 1, 0);
  for (std::uint32_t i = 1; i < nodes.size(); ++i) ++first[nodes[i].parent + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::uint32_t> children(nodes.size());
  {
    std::vector<std::uint32_t> cursor(first.begin(), first.end() - 1);
    for (std::uint32_t i = 1; i < nodes.size(); ++i) children[cursor[nodes[i].parent]++] = i;
  }

  FlameView view;
  struct Todo {
    std::uint32_t node;
    std::int64_t parent;
  };
  std::vector<Todo> todo = {{root, -1}};
  std::vector<std::uint32_t> kept;
  while (!todo.empty()) {
    const Todo at = todo.back();
    todo.pop_back();
    const FlameNode& node = nodes[at.node];
    const bool full = view.nodes.size() >= kMostShown;
    const auto index = static_cast<std::int64_t>(view.nodes.size());
    view.nodes.push_back({at.parent,
                          node.function == FlameTree::kRoot ? kFlameRoot : std::int64_t{node.function},
                          0,
                          {node.side[0], node.side[1]}});
    kept.clear();
    FlameView::Node rest{index, kFlameMerged, 0, {}};
    // Everything below a child that is not shown is within its total; its self time is all of that.
    for (std::uint32_t i = first[at.node]; i < first[at.node + 1]; ++i) {
      const FlameNode& child = nodes[children[i]];
      if (shown(children[i]) && !full) {
        kept.push_back(children[i]);
        continue;
      }
      ++rest.merged;
      for (int side = 0; side < 2; ++side) {
        rest.side[side].total += child.side[side].total;
        rest.side[side].self += child.side[side].total;
        rest.side[side].calls += child.side[side].calls;
      }
    }
    std::sort(kept.begin(), kept.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::uint64_t of_a = total(a, 0) + total(a, 1);
      const std::uint64_t of_b = total(b, 0) + total(b, 1);
      return of_a != of_b ? of_a > of_b : nodes[a].function < nodes[b].function;
    });
    if (rest.merged != 0) view.nodes.push_back(rest);
    for (auto child = kept.rbegin(); child != kept.rend(); ++child) todo.push_back({*child, index});
  }
  return view;
}

}  // namespace karst::columns
