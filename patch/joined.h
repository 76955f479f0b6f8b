// SPDX-License-Identifier: MIT
// Which frames are one function. A part that a compiler split off has a frame of its own, and is entered by jumps
// alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "patch/flow.h"
#include "patch/places.h"

namespace karst::patch {

/// One module's functions, as numbers of frames.
class Joined {
 public:
  /// All must outlive it.
  Joined(const Frames& frames, const Code& code, const Flow& flow);

  struct Function {
    std::size_t owner = 0;           ///< the frame that it is entered by
    std::vector<std::size_t> parts;  ///< its other frames
    bool is_shared = false;          ///< several of its frames are entered by calls, or none is

    /// Its frames, the owner first.
    std::vector<std::size_t> all() const;
  };
  /// In order of their owners.
  const std::vector<Function>& functions() const { return functions_; }
  /// The function that the frame is a part of.
  const Function& function_of(std::size_t f) const { return functions_[function_of_[f]]; }
  /// It begins as what is called does.
  bool begins_called(std::size_t f) const { return begins_called_[f]; }
  bool is_linkage(std::size_t f) const { return is_linkage_[f]; }

  /// `all`: a function's frames.
  bool is_inside(std::uint64_t target, const std::vector<std::size_t>& all) const;
  /// What one look at a function's instructions tells.
  struct Looked {
    LeftOut unsound = LeftOut::kNot;  ///< why it is not known of each place in it whether something goes to it
    std::uint32_t instructions = 0;   ///< without NOPs and the endbr64 at its entry
    bool loops = false;
    struct Turn {
      std::uint32_t part;    ///< in `all`
      std::uint32_t number;  ///< of the instruction
    };
    std::vector<Turn> turns;  ///< jumps and returns, in order
  };
  /// Any thread.
  Looked look(const std::vector<std::size_t>& all) const;

 private:
  const Frame& frame(std::size_t f) const { return frames_.all()[f]; }
  std::size_t root(std::size_t f);
  bool looks_as_linkage(std::size_t f) const;
  bool is_reached_by(std::size_t f, std::size_t part) const;
  void join();
  void gather_functions();

  const Frames& frames_;
  const Code& code_;
  const Flow& flow_;
  std::vector<std::size_t> parent_;  // while frames are joined
  std::vector<bool> begins_called_;
  std::vector<bool> is_linkage_;
  std::vector<Function> functions_;
  std::vector<std::size_t> function_of_;  // by frame
};

}  // namespace karst::patch
