// SPDX-License-Identifier: MIT
// A module's code, instruction by instruction, and every place in it that something may jump or return to.
//
// Instructions are those of the frames (frames.h), decoded one after the other. Places that control may come to are
// gathered generously: one that is none costs a patch, one that is missed would break a program.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/pages.h"
#include "patch/elf_image.h"
#include "patch/frames.h"
#include "patch/instruction.h"

namespace karst::patch {

inline constexpr std::uint64_t kJumpSize = 5;       ///< bytes of jmp rel32
inline constexpr std::uint64_t kShortJumpSize = 2;  ///< bytes of jmp rel8

/// A set of addresses of code.
class AddressSet {
 public:
  AddressSet() = default;
  AddressSet(std::uint64_t low, std::uint64_t size) : low_(low), size_(size), words_((size + kBits - 1) / kBits) {}
  void add(std::uint64_t address) {
    const std::uint64_t n = address - low_;
    if (n < size_) words_[n / kBits] |= std::uint64_t{1} << n % kBits;
  }
  /// [begin, end), as far as it lies in the code.
  void add(std::uint64_t begin, std::uint64_t end) {
    for_words(begin, end, [this](std::size_t word, std::uint64_t bits) {
      words_[word] |= bits;
      return true;
    });
  }
  /// All of another set, which is of the same code.
  void add(const AddressSet& others) {
    for (std::size_t word = 0; word < words_.size(); ++word) words_[word] |= others.words_[word];
  }
  /// Bytes of the code that it is of.
  std::uint64_t size() const { return size_; }
  bool has(std::uint64_t address) const {
    const std::uint64_t n = address - low_;
    return n < size_ && (words_[n / kBits] >> n % kBits & 1) != 0;
  }
  /// True if it has one of [begin, end).
  bool has_one(std::uint64_t begin, std::uint64_t end) const {
    return !for_words(begin, end, [this](std::size_t word, std::uint64_t bits) { return (words_[word] & bits) == 0; });
  }

 private:
  static constexpr std::uint64_t kBits = 64;

  /// visit(word, its bits that lie in [begin, end)) until one says false, which is returned.
  template <typename Visit>
  bool for_words(std::uint64_t begin, std::uint64_t end, Visit visit) const {
    const std::uint64_t last = end < low_ ? 0 : std::min(end - low_, size_);
    for (std::uint64_t n = begin < low_ ? 0 : begin - low_; n < last;) {
      const std::uint64_t next = std::min(last, (n / kBits + 1) * kBits);
      const std::uint64_t bits = ~std::uint64_t{0} >> (kBits - (next - n)) << n % kBits;
      if (!visit(n / kBits, bits)) return false;
      n = next;
    }
    return true;
  }

  std::uint64_t low_ = 0;
  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> words_;
};

class Code {
 public:
  /// Decodes all frames. Both must outlive this. Errors: code that lies so far apart that it is not looked at.
  static Result<Code> decode(const ElfImage& image, const Frames& frames);

  /// A symbol says that a compiler split this part off a function.
  bool is_cold(std::uint64_t address) const { return cold_.has(address); }
  /// The program begins there: it is no function, though it has a frame.
  bool is_start(std::uint64_t address) const { return address == image_->entry(); }
  /// No address yet.
  AddressSet no_addresses() const { return none_; }
  /// Empty: something in it is no instruction, or the last one goes beyond its end.
  std::span<const Instruction> of(std::size_t frame) const {
    const Part& part = parts_[frame < parts_[0].end ? 0 : 1];
    const std::size_t n = frame - part.begin;
    return std::span(part.instructions).subspan(part.first[n], part.first[n + 1] - part.first[n]);
  }
  std::span<const std::byte> bytes(std::uint64_t begin, std::size_t size) const;

  /// It lies within an instruction, not at its beginning. What leads there is no address: a number that looks like one.
  bool is_within_instruction(std::uint64_t address) const {
    return parts_[0].within.has(address) || parts_[1].within.has(address);
  }
  /// Something may jump, call, return or point to this address.
  bool is_target(std::uint64_t address) const { return targets_.has(address); }
  /// True if one of [begin, end) is a target.
  bool has_target(std::uint64_t begin, std::uint64_t end) const { return targets_.has_one(begin, end); }
  /// Something may call it, or has its address in data: a function begins there, or code that is entered likewise.
  bool is_entered(std::uint64_t address) const { return entered_.has(address); }
  /// The word of data at `at` is a pointer to this address of code; 0: to a symbol's, known at load time. None: to
  /// none.
  std::optional<std::uint64_t> pointer_at(std::uint64_t at) const;
  /// Words of data that are pointers into the range.
  std::span<const ElfImage::CodePointer> pointers_into(Range range) const;
  bool is_code(std::uint64_t address) const { return image_->is_code(address); }
  /// ElfImage::number()
  std::optional<std::int64_t> number(std::uint64_t at, unsigned size) const { return image_->number(at, size); }
  /// The frame has tables of addresses within itself, for jumps.
  bool has_table(std::size_t frame) const { return has_table_[frame] != 0; }
  /// A jump that stays within its function may go there: data or code has the address, which lies in a frame's middle.
  bool is_label(std::uint64_t address) const { return labels_.has(address); }
  /// What returns or jumps on behalf of others, so that no processor guesses where to (-mfunction-return,
  /// -mindirect-branch, retpolines).
  struct Thunk {
    enum class Kind : std::uint8_t { kNone, kReturn, kJump };
    Kind kind = Kind::kNone;
    std::uint8_t reg = 0;  ///< of kJump: the number of the register that has the address
  };
  Thunk thunk(std::uint64_t address) const;
  /// A thunk that returns stands there, inline.
  bool is_returning_call(std::uint64_t address) const;
  /// Where such a thunk waits for a processor that guesses.
  bool is_thunk_loop(std::uint64_t address) const;
  /// Something calls an address within the frame that is not its beginning, and that is no thunk.
  bool is_called_inside(std::size_t frame) const { return is_called_inside_[frame]; }
  /// The function that begins there is given arithmetic flags, or gives some back: an assembler's, or one that clang's
  /// outliner made. Hooks do not keep them.
  bool takes_flags(std::uint64_t address) const { return takes_flags_.has(address); }
  bool returns_flags(std::uint64_t address) const { return returns_flags_.has(address); }
  /// Instructions that put the stack pointer into memory, in order: the frame, and the number in it.
  struct Numbered {
    std::size_t frame;
    std::size_t number;
  };
  std::vector<Numbered> stack_pointers_saved() const;
  /// Bytes of padding from `address` on that nothing goes to; `limit` at most. Also between frames.
  std::size_t padding(std::uint64_t address, std::size_t limit) const;

 private:
  /// Instructions of some frames that follow each other.
  struct Part {
    std::size_t begin = 0;  // frames
    std::size_t end = 0;
    std::vector<Instruction, pages::Allocator<Instruction>> instructions;
    std::vector<std::size_t> first;  // by frame, and one behind
    AddressSet within;               // instructions, not at their beginnings
    std::vector<Numbered> stack_pointers_saved;
    // What its instructions say.
    AddressSet targets;
    AddressSet entered;
    AddressSet labels;
    AddressSet takes_flags;
    AddressSet returns_flags;
    std::vector<std::size_t> called_inside;  // frames
  };
  static constexpr std::size_t kParts = 2;  // read side by side

  explicit Code(const ElfImage& image, const Frames& frames);
  void decode_part(Part& part) const;
  void decode_frame(Part& part, std::size_t frame) const;
  void gather_from(Part& part);
  void gather_table(Part& part, std::size_t frame, std::uint64_t table, unsigned size);
  void gather_number(Part& part, std::size_t frame, std::uint64_t number);
  void gather_wide_number(Part& part, std::size_t frame, const Instruction& instruction);
  void follow_returned_flags();
  void gather_from_data();

  const ElfImage* image_;
  const Frames* frames_;
  std::array<Part, kParts> parts_;
  AddressSet none_;
  AddressSet targets_;
  AddressSet entered_;
  AddressSet labels_;
  AddressSet cold_;
  AddressSet takes_flags_;
  AddressSet returns_flags_;
  std::vector<std::uint8_t> has_table_;  // not bool: parts are read side by side
  std::vector<ElfImage::CodePointer> pointers_by_place_;
  std::vector<ElfImage::CodePointer> pointers_by_target_;
  std::uint64_t global_offset_table_ = 0;
  std::vector<std::uint64_t> return_thunks_;  // by their name: one, or as many as there are symbols of it
  std::vector<bool> is_called_inside_;
};

}  // namespace karst::patch
