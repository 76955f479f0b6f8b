// SPDX-License-Identifier: MIT
#include "symbols/dwarf_inlined.h"

namespace karst::symbols {

InlineTree::Place InlineTree::add(std::uint32_t parent, const void* origin) {
  const std::uint32_t first = parent == kRoot ? roots_.first : nodes_[parent - 1].first_child;
  for (std::uint32_t at = first; at != kNowhere; at = nodes_[at - 1].next) {
    if (nodes_[at - 1].origin != origin) continue;
    ++nodes_[at - 1].record.copies;
    return {at, false};
  }
  if (nodes_.size() >= kMaxNodes) return {};
  Node made;
  made.origin = origin;
  made.record.copies = 1;
  made.record.depth = parent == kRoot ? 1 : nodes_[parent - 1].record.depth + 1;
  nodes_.push_back(made);
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  std::uint32_t& first_child = parent == kRoot ? roots_.first : nodes_[parent - 1].first_child;
  std::uint32_t& last_child = parent == kRoot ? roots_.last : nodes_[parent - 1].last_child;
  if (first_child == kNowhere) {
    first_child = node;
  } else {
    nodes_[last_child - 1].next = node;
  }
  last_child = node;
  return {node, true};
}

void InlineTree::flatten(std::vector<ImageInlined>& to) const {
  std::vector<std::uint32_t> due;  // siblings to go on with, the deepest last
  for (std::uint32_t at = roots_.first; at != kNowhere || !due.empty();) {
    if (at == kNowhere) {
      at = due.back();
      due.pop_back();
      continue;
    }
    const Node& node = nodes_[at - 1];
    to.push_back(node.record);
    if (node.next != kNowhere) due.push_back(node.next);
    at = node.first_child;
  }
}

}  // namespace karst::symbols
