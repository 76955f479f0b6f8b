// SPDX-License-Identifier: MIT
// One instruction of a module's code: what it does to the flow, and whether it may be executed elsewhere.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace karst::patch {

enum class Kind : std::uint8_t {
  kPlain,         ///< may be executed anywhere
  kRelative,      ///< names an address by its distance from itself (rip): that must be written anew
  kJump,          ///< to one address
  kJumpIf,        ///< to one address or to what follows
  kShortJumpIf,   ///< has no form that reaches farther (jrcxz, loop)
  kJumpAnywhere,  ///< to an address in a register or in memory
  kCall,          ///< of one address
  kCallAnywhere,  ///< of an address in a register or in memory
  kReturn,
  kPadding,  ///< NOP, int3
  kStop,     ///< what follows is not reached from here: ud2, hlt
  kFixed,    ///< must stay where it is
};

/// Small, as a large program has ten millions.
struct Instruction {
  std::uint64_t target = 0;    ///< of a jump, a call or kRelative: the address that it names
  std::uint32_t offset = 0;    ///< from its frame's beginning
  std::uint8_t size : 4 = 0;   ///< bytes, 15 at most
  std::uint8_t field : 4 = 0;  ///< where in the instruction the distance stands; 0: it has none
  Kind kind : 4 = Kind::kPlain;
  bool may_fault : 1 = false;            ///< reads or writes memory other than the stack and the module, or divides
  bool by_frame : 1 = false;             ///< reads or writes memory by rbp: the stack, if that is a frame pointer
  bool ends_flow : 1 = false;            ///< what follows is reached by jumps alone
  bool saves_stack_pointer : 1 = false;  ///< puts it into memory
  bool reads_flags : 1 = false;          ///< one of the six arithmetic flags
  bool writes_flags : 1 = false;         ///< some of them, or leaves them undefined
};
static_assert(sizeof(Instruction) == 16);

inline bool is_jump(const Instruction& i) {
  return i.kind == Kind::kJump || i.kind == Kind::kJumpIf || i.kind == Kind::kShortJumpIf;
}
inline bool is_call(const Instruction& i) { return i.kind == Kind::kCall || i.kind == Kind::kCallAnywhere; }

/// Decodes by Zydis, and what is alike only once: an instruction's bytes before its displacement and its immediate say
/// all but these two numbers. A program of 5 million instructions has some 37,000 that differ in those bytes. They are
/// kept as a tree of bytes (a trie). One thread at a time.
class Decoder {
 public:
  /// Nodes of the tree, of 1 KiB each. Beyond them all is decoded by Zydis, so hostile code cannot ask for memory.
  static constexpr std::size_t kMostNodes = std::size_t{1} << 14;

  explicit Decoder(std::size_t most_nodes = kMostNodes) : most_nodes_(most_nodes) {}

  /// The instruction that begins at `address`, with offset 0. None: the bytes are none, or too few of one.
  std::optional<Instruction> decode(std::span<const std::byte> bytes, std::uint64_t address);

  /// The calling thread's own. What it has seen in one module it knows in the next.
  static Decoder& of_thread();

 private:
  struct Shape {
    Instruction instruction;       // without its target
    std::uint8_t number_size = 0;  // bytes of the distance at its field
  };
  using Node = std::array<std::uint32_t, 256>;  // by the next byte: 0, another node, or kLeaf and a shape
  static constexpr std::uint32_t kLeaf = std::uint32_t{1} << 31;

  const Shape* find(std::span<const std::byte> bytes) const;
  void keep(std::span<const std::byte> bytes, const Shape& shape);

  std::size_t most_nodes_;
  std::vector<Node> nodes_;
  std::vector<Shape> shapes_;
};

}  // namespace karst::patch
