// SPDX-License-Identifier: MIT
#include "patch/landings.h"

#include <algorithm>
#include <map>
#include <optional>

#include "patch/zydis.h"

namespace karst::patch {
namespace {

/// Memory at a distance from a register, or at an address (no register).
struct Place {
  ZydisRegister base = ZYDIS_REGISTER_NONE;
  std::uint64_t at = 0;
};

/// A buffer has the frame, the address and the stack pointer, in words that follow each other; with CET gcc puts that
/// of the shadow stack before the last. They are filled without a jump between; the order differs.
class Search {
 public:
  Search(const Frames& frames, const Code& code, const Joined& joined)
      : frames_(frames), code_(code), joined_(joined) {}

  std::vector<Landing> all() {
    const std::vector<Code::Numbered> saved = code_.stack_pointers_saved();
    if (saved.size() > kMostSaved) return {};
    for (const Code::Numbered& one : saved)
      if (code_.of(one.frame).size() <= kMostInstructions) look(one.frame, one.number);
    std::vector<Landing> found;
    for (auto& [address, landing] : found_) found.push_back(std::move(landing));
    return found;
  }

 private:
  // Each is sought in all of its function: beyond these a file is no compiler's work, but a trap.
  static constexpr std::size_t kMostSaved = 4096;
  static constexpr std::size_t kMostInstructions = 1 << 16;

  static constexpr std::size_t kFar = 24;            // instructions
  static constexpr std::uint64_t kWord = 8;          // bytes
  static constexpr std::uint16_t kWideOperand = 64;  // bits

  const Instruction& at(std::size_t n) const { return code_.of(f_)[n]; }
  std::uint64_t address(std::size_t n) const { return frames_.all()[f_].code.begin + at(n).offset; }

  bool decode(std::size_t n) {
    const auto bytes = code_.bytes(address(n), at(n).size);
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis(), bytes.data(), bytes.size(), &in_, operands_));
  }

  /// Where the decoded instruction, a mov of 8 bytes to memory, puts something.
  std::optional<Place> stored_at(std::size_t n) const {
    const ZydisDecodedOperand& to = operands_[0];
    if (in_.mnemonic != ZYDIS_MNEMONIC_MOV || to.type != ZYDIS_OPERAND_TYPE_MEMORY || to.size != kWideOperand ||
        to.mem.index != ZYDIS_REGISTER_NONE || to.mem.segment == ZYDIS_REGISTER_FS ||
        to.mem.segment == ZYDIS_REGISTER_GS)
      return std::nullopt;
    if (to.mem.base == ZYDIS_REGISTER_RIP) return Place{ZYDIS_REGISTER_NONE, at(n).target};
    return Place{to.mem.base, static_cast<std::uint64_t>(to.mem.disp.value)};
  }

  /// Whether flow goes from number n - 1 to n, and from nowhere else.
  bool follows(std::size_t n) const {
    const Instruction& before = at(n - 1);
    return !is_jump(before) && !is_call(before) && !before.ends_flow && !code_.is_target(address(n));
  }

  std::size_t first_of_run(std::size_t n) const {
    std::size_t first = n;
    while (first != 0 && n - first < kFar && follows(first)) --first;
    return first;
  }
  std::size_t end_of_run(std::size_t n) const {
    std::size_t end = n + 1;
    while (end < code_.of(f_).size() && end - n < kFar && follows(end)) ++end;
    return end;
  }

  /// Number `n` may save the stack pointer in a buffer.
  void look(std::size_t f, std::size_t n) {
    f_ = f;
    if (!decode(n)) return;
    const auto top = stored_at(n);
    if (!top) return;
    const std::size_t first = first_of_run(n);
    const std::size_t end = end_of_run(n);
    std::map<std::uint64_t, std::size_t> words;  // by their distance before the last: who fills them
    for (std::size_t i = first; i < end; ++i) {
      if (!decode(i)) return;
      if (const auto stored = stored_at(i); stored && stored->base == top->base) words[top->at - stored->at] = i;
    }
    for (const std::uint64_t label : {kWord, 2 * kWord}) {
      if (!words.contains(label) || !words.contains(label + kWord)) continue;
      const auto lands = stored_number(words[label], first);
      if (!lands || !is_landing(*lands)) continue;
      Landing& landing = found_[*lands];
      landing.set_by.push_back(alike(n, first, end));
      if (landing.behind.empty()) landing.behind = behind(*lands);
      return;
    }
  }

  Alike behind(std::uint64_t lands) {
    f_ = *frames_.find(lands);
    std::size_t n = 0;
    while (address(n) != lands) ++n;
    return alike(n, n, end_of_run(n));
  }

  /// Those of [first, end) around number `n`, the nearest behind it first.
  Alike alike(std::size_t n, std::size_t first, std::size_t end) {
    Alike found = {address(n)};
    for (std::size_t i = n; i + 1 < end && keeps_stack_pointer(i); ++i) found.push_back(address(i + 1));
    for (std::size_t i = n; i-- > first && keeps_stack_pointer(i);) found.push_back(address(i));
    return found;
  }

  bool keeps_stack_pointer(std::size_t n) {
    return decode(n) && std::none_of(operands_, operands_ + in_.operand_count, [](const ZydisDecodedOperand& o) {
             return o.type == ZYDIS_OPERAND_TYPE_REGISTER && o.reg.value == ZYDIS_REGISTER_RSP &&
                    (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
           });
  }

  /// What number `store` stores, where that is a number in it, or in one before it from `first` on.
  std::optional<std::uint64_t> stored_number(std::size_t store, std::size_t first) {
    if (!decode(store)) return std::nullopt;
    if (operands_[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return operands_[1].imm.value.u;
    if (operands_[1].type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
    const ZydisRegister wanted = operands_[1].reg.value;
    for (std::size_t i = store; i-- > first;) {
      if (!decode(i)) return std::nullopt;
      const ZydisDecodedOperand& to = operands_[0];
      if (to.type != ZYDIS_OPERAND_TYPE_REGISTER || (to.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0 ||
          ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, to.reg.value) != wanted)
        continue;
      if (in_.mnemonic == ZYDIS_MNEMONIC_LEA && at(i).kind == Kind::kRelative) return at(i).target;
      if (in_.mnemonic == ZYDIS_MNEMONIC_MOV && operands_[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return operands_[1].imm.value.u;
      return std::nullopt;
    }
    return std::nullopt;
  }

  /// It lies in the function, and nothing else comes there: neither flow nor a jump of the function's.
  bool is_landing(std::uint64_t lands) const {
    const auto f = frames_.find(lands);
    if (!f) return false;
    const std::vector<std::size_t> all = joined_.function_of(f_).all();
    if (std::find(all.begin(), all.end(), *f) == all.end()) return false;
    const Range own = frames_.all()[*f].code;
    const auto instructions = code_.of(*f);
    auto n = std::find_if(instructions.begin(), instructions.end(),
                          [&](const Instruction& i) { return own.begin + i.offset == lands; });
    if (n == instructions.end()) return false;
    while (n != instructions.begin() && (n - 1)->kind == Kind::kPadding) --n;
    if (n != instructions.begin() && !(n - 1)->ends_flow) return false;
    return std::none_of(all.begin(), all.end(), [&](std::size_t part) {
      const auto code = code_.of(part);
      return std::any_of(code.begin(), code.end(),
                         [&](const Instruction& i) { return is_jump(i) && i.target == lands; });
    });
  }

  const Frames& frames_;
  const Code& code_;
  const Joined& joined_;
  ZydisDecodedInstruction in_{};
  ZydisDecodedOperand operands_[ZYDIS_MAX_OPERAND_COUNT]{};
  std::size_t f_ = 0;
  std::map<std::uint64_t, Landing> found_;
};

}  // namespace

std::vector<Landing> landings_in(const Frames& frames, const Code& code, const Joined& joined) {
  return Search(frames, code, joined).all();
}

}  // namespace karst::patch
