// SPDX-License-Identifier: MIT
// Whether a jump to an address in a register or in memory leaves its function (a tail call), or goes on in it (a
// switch, a computed goto).
//
// A tail call has the stack pointer of the function's entry, and a computed goto that of its label. So a jump with
// another stack pointer stays. One with that of the entry leaves, unless the function has a label with the same stack
// pointer: then where the address comes from must tell, and what it does not tell is not known. One jump instruction
// never does both, so one way by which its address comes there is enough.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "patch/flow.h"
#include "patch/joined.h"

namespace karst::patch {

/// One module's. One thread at a time.
class Leaving {
 public:
  /// All must outlive it.
  Leaving(const Frames& frames, const Code& code, const Joined& joined, const Flow& flow)
      : frames_(frames), code_(code), joined_(joined), flow_(flow) {}

  /// Of instruction `n` of frame `f`, which is one of `all`, a function's frames. None: not known.
  std::optional<bool> leaves(const std::vector<std::size_t>& all, std::size_t f, std::size_t n);
  /// A jump to a thunk that jumps on, which is as one to an address in a register.
  bool is_by_thunk(const Instruction& i) const {
    return is_jump(i) && code_.thunk(i.target).kind == Code::Thunk::Kind::kJump;
  }

 private:
  using Jump = std::pair<std::size_t, std::size_t>;  // a frame, and the number of an instruction
  /// What is known of an address, or of a word.
  struct Value {
    enum class Kind : std::uint8_t {
      kUnknown,
      kAgain,     ///< what it was the last time that this place was passed
      kNumber,    ///< at
      kElement,   ///< the address of an element of a table
      kWord,      ///< 8 bytes that lie at `at`, or in a table
      kDistance,  ///< 4 bytes, sign-extended, of a table
      kSum        ///< a number, which is `base`, and a distance that lies in a table
    };
    bool is_known() const { return kind != Kind::kUnknown && kind != Kind::kAgain; }

    Kind kind = Kind::kUnknown;
    bool is_indexed = false;
    bool is_known_base = false;  ///< of kSum
    std::uint8_t size = 8;       ///< of kSum: bytes of its distance
    std::uint64_t table = 0;     ///< as the code names it
    std::uint64_t at = 0;        ///< with what an instruction adds to it
    std::uint64_t base = 0;

    bool operator==(const Value&) const = default;
  };
  /// What an address leads to.
  enum class Leads : std::uint8_t {
    kNowhere,  ///< it is no pointer to code
    kInside,   ///< where the stack pointer is that of the function's entry
    kOut,
    kElsewhere  ///< to no place that such a jump goes to: into another function's middle, or where there is a frame
  };
  /// The function that is looked at.
  struct Looked {
    const std::vector<std::size_t>* all = nullptr;
    std::map<std::uint64_t, std::vector<Jump>> jumps_to;
    std::vector<Jump> to_labels;  ///< jumps that are not known to leave
    std::map<Jump, Value> targets;
    std::optional<std::set<std::uint64_t>> label_words;  ///< where data has the labels' addresses
    bool has_labels = false;                             ///< where the stack pointer is that of the entry
  };

  void look(const std::vector<std::size_t>& all);
  bool has_labels(const std::vector<std::size_t>& all) const;
  std::optional<bool> decide(const Value& target);
  std::optional<bool> decide_by_table(const Value& word);
  std::optional<bool> decide_by_address(std::uint64_t address) const;
  Leads leads(std::uint64_t address) const;
  Leads word_leads(std::uint64_t at) const;
  const std::set<std::uint64_t>& label_words();
  bool is_every_label_explained();

  Value target_of(std::size_t f, std::size_t n);
  Value before(std::size_t f, std::size_t n, int wanted, unsigned depth);
  Value by_other_ways(std::size_t f, std::size_t n, int wanted, unsigned depth);
  Value set_by(std::size_t f, std::size_t n, int wanted, unsigned depth);
  struct Memory {
    int base = 0;
    int index = 0;
    std::uint8_t scale = 0;
    std::uint64_t distance = 0;
  };
  Value place(std::size_t f, std::size_t n, const Memory& memory, unsigned depth);
  static Value loaded(const Value& place, std::uint16_t bits);
  static Value sum(const Value& a, const Value& b);

  const Frames& frames_;
  const Code& code_;
  const Joined& joined_;
  const Flow& flow_;
  std::map<Jump, std::optional<bool>> known_;
  std::set<std::size_t> seen_;  // functions, by their first frames
  Looked looked_;
  unsigned steps_ = 0;           // for one jump
  std::uint64_t all_steps_ = 0;  // for the module
  std::set<std::pair<std::uint64_t, int>> passed_;
};

}  // namespace karst::patch
