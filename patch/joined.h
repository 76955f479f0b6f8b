// Which frames are one function. A part that a compiler split off has a frame of its own, and is entered by jumps
// alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "patch/flow.h"
#include "patch/places.h"

namespace karst::patch {

/// One module's functions, as numbers of frames.
class Joined {
 public:
  /// All must outlive it.
  Joined(const Frames& frames, const Code& code, const Flow& flow);

  /// The frame that a function is entered by: its other parts.
  const std::map<std::size_t, std::vector<std::size_t>>& functions() const { return groups_; }
  /// The frame's function: where it is entered first.
  std::vector<std::size_t> function_of(std::size_t f) const;
  bool is_owner(std::size_t f) const { return parent_[f] == f; }
  /// It begins as what is called does.
  bool begins_called(std::size_t f) const { return begins_called_[f]; }
  bool is_linkage(std::size_t f) const { return is_linkage_[f]; }
  /// Several of its parts are entered by calls, or none is.
  bool is_shared(std::size_t owner) const { return is_shared_.at(owner); }

  /// `all`: a function's frames.
  bool is_inside(std::uint64_t target, const std::vector<std::size_t>& all) const;
  /// Why it is not known of each place in the function whether something goes to it.
  LeftOut unsound(const std::vector<std::size_t>& all) const;

 private:
  const Frame& frame(std::size_t f) const { return frames_.all()[f]; }
  std::size_t root(std::size_t f);
  bool looks_as_linkage(std::size_t f) const;
  bool is_reached_by(std::size_t f, std::size_t part) const;
  bool is_whole(const std::vector<std::size_t>& all) const;

  const Frames& frames_;
  const Code& code_;
  const Flow& flow_;
  std::vector<std::size_t> parent_;
  std::vector<bool> begins_called_;
  std::vector<bool> is_linkage_;
  std::map<std::size_t, std::vector<std::size_t>> groups_;
  std::map<std::size_t, bool> is_shared_;
};

}  // namespace karst::patch
