// SPDX-License-Identifier: MIT
// What was inlined into one function, gathered while its DWARF is walked. Private to symbols/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "symbols/symbol_image.h"

namespace karst::symbols {

/// The inlined functions of one function, as a tree: copies of the same function in the same place of the tree are
/// one node, however often the compiler made them.
class InlineTree {
 public:
  /// The function itself.
  static constexpr std::uint32_t kRoot = 0;
  /// No place in any tree.
  static constexpr std::uint32_t kNowhere = 0xffffffffU;
  /// Nodes of one function. Real functions have dozens, generated ones hundreds.
  static constexpr std::size_t kMaxNodes = 1024;

  struct Place {
    std::uint32_t node = kNowhere;
    bool fresh = false;  ///< the first copy: its record is to be filled in
  };
  /// Counts one more copy of the function at `origin` (the address of its DIE) inlined into `parent`; kNowhere when
  /// the tree is full.
  Place add(std::uint32_t parent, const void* origin);
  ImageInlined& record(std::uint32_t node) { return nodes_[node - 1].record; }

  bool empty() const { return nodes_.empty(); }
  /// Appends the records, parents before children.
  void flatten(std::vector<ImageInlined>& to) const;

 private:
  struct Node {
    const void* origin = nullptr;
    std::uint32_t first_child = kNowhere;
    std::uint32_t last_child = kNowhere;
    std::uint32_t next = kNowhere;  ///< sibling
    ImageInlined record{};
  };
  struct Children {
    std::uint32_t first = kNowhere;
    std::uint32_t last = kNowhere;
  };

  std::vector<Node> nodes_;  // number n is at n - 1
  Children roots_;
};

}  // namespace karst::symbols
