// SPDX-License-Identifier: MIT
#include "patch/stack_arguments.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "patch/flow.h"
#include "patch/tail_calls.h"
#include "patch/zydis.h"

namespace karst::patch {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;  // of all functions: a fourth of a second
constexpr std::uint64_t kMostOfFunction = 16 << 10;
constexpr std::size_t kMostFrames = 64;  // that one function leads to

constexpr std::int64_t kWord = 8;
constexpr std::int64_t kFrameDepth = 16;  // from rbp, a frame pointer, to the CFA
constexpr std::int64_t kNearCfa = 128;    // bytes below it

/// One instruction with its explicit operands.
struct Decoded {
  ZydisDecodedInstruction i{};
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT]{};

  bool decode(std::span<const std::byte> bytes) {
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis(), bytes.data(), bytes.size(), &i, operands));
  }
  std::span<const ZydisDecodedOperand> all() const { return {operands, i.operand_count_visible}; }
  bool is_register(std::size_t n, ZydisRegister reg) const {
    return n < i.operand_count_visible && operands[n].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operands[n].reg.value == reg;
  }
};

constexpr std::size_t kRegisters = 16;

/// Of a register of 64 bits, or a part of it; kRegisters: it is another one.
std::size_t number_of(ZydisRegister reg) {
  const ZydisRegister all = whole(reg);
  return all < ZYDIS_REGISTER_RAX || all > ZYDIS_REGISTER_R15 ? kRegisters
                                                              : static_cast<std::size_t>(all - ZYDIS_REGISTER_RAX);
}

/// Which registers may have the address of something in the function's frame that lies near the CFA: how far below it
/// at least (negative). A loop may begin before what it reads, so such an address must not be counted up from.
class Near {
 public:
  Near() { at_.fill(kNone); }
  bool has(std::size_t reg) const { return reg < kRegisters && at_[reg] != kNone; }
  std::int64_t at(std::size_t reg) const { return at_[reg]; }
  void set(std::size_t reg, std::int64_t below) {
    if (reg < kRegisters) at_[reg] = below;
  }
  void forget(std::size_t reg) {
    if (reg < kRegisters) at_[reg] = kNone;
  }
  void forget_all() { at_.fill(kNone); }
  /// What a called function may change.
  void called() {
    for (const ZydisRegister reg :
         {ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RDX, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI,
          ZYDIS_REGISTER_R8, ZYDIS_REGISTER_R9, ZYDIS_REGISTER_R10, ZYDIS_REGISTER_R11})
      forget(number_of(reg));
  }
  /// Whether that adds anything.
  bool join(const Near& other) {
    bool any = false;
    for (std::size_t reg = 0; reg < at_.size(); ++reg) {
      any = any || other.at_[reg] > at_[reg];
      at_[reg] = std::max(at_[reg], other.at_[reg]);
    }
    return any;
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  std::array<std::int64_t, kRegisters> at_;
};

/// Follows one frame's instructions.
class Follower {
 public:
  explicit Follower(const Frames& frames) : frames_(frames) {}

  Near& near() { return near_; }

  /// False: the instruction may reach the caller's frame, or the return address; or it cannot be told.
  bool step(const Decoded& d, std::uint64_t address) {
    address_ = address;
    const bool is_address = d.i.mnemonic == ZYDIS_MNEMONIC_LEA;
    if (d.i.mnemonic == ZYDIS_MNEMONIC_NOP || d.i.mnemonic == ZYDIS_MNEMONIC_ENDBR64) return true;
    if (d.i.mnemonic == ZYDIS_MNEMONIC_RET && d.i.operand_count_visible != 0) return false;
    if (is_address || is_copy_of_stack_pointer(d)) return take_address(d);
    for (const ZydisDecodedOperand& operand : d.all())
      if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && !stays_below(operand)) return false;
    return keeps_stack_pointer(d, address + d.i.length) && use_registers(d);
  }

 private:
  static constexpr ZydisRegister kStack = ZYDIS_REGISTER_RSP;
  static constexpr ZydisRegister kFrame = ZYDIS_REGISTER_RBP;

  /// How far below the CFA the place at `distance` from the register lies; none: it cannot be told.
  std::optional<std::int64_t> below_cfa(ZydisRegister base, std::int64_t distance) const {
    const bool is_frame = frames_.has_frame_pointer(address_);
    if (base == kFrame) return is_frame ? std::optional(distance - kFrameDepth) : std::nullopt;
    const auto depth = is_frame ? std::nullopt : frames_.depth(address_);
    return depth ? std::optional(distance - *depth) : std::nullopt;
  }
  /// rbp has nothing to do with the frame.
  bool is_frame_free() const { return !frames_.has_frame_pointer(address_) && frames_.depth(address_).has_value(); }
  bool is_of_frame(ZydisRegister reg) const {
    return whole(reg) == kStack || (whole(reg) == kFrame && !is_frame_free());
  }

  bool stays_below(const ZydisDecodedOperand& operand) const {
    const auto& memory = operand.mem;
    if (memory.index != ZYDIS_REGISTER_NONE && is_of_frame(memory.index)) return false;
    const std::size_t index = number_of(memory.index);
    const std::size_t base = number_of(memory.base);
    if (near_.has(index)) return false;
    std::optional<std::int64_t> below;
    if (memory.base != ZYDIS_REGISTER_NONE && is_of_frame(memory.base))
      below = below_cfa(memory.base, memory.disp.value);
    else if (near_.has(base))
      below = near_.at(base) + memory.disp.value;
    else
      return true;
    return below && memory.index == ZYDIS_REGISTER_NONE && *below + operand.size / 8 <= -kWord;
  }

  static bool is_copy_of_stack_pointer(const Decoded& d) {
    return d.i.mnemonic == ZYDIS_MNEMONIC_MOV && d.is_register(1, kStack) &&
           d.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER && !d.is_register(0, kFrame);
  }

  /// A register gets an address: lea, or a copy of the stack pointer.
  bool take_address(const Decoded& d) {
    const std::size_t to = number_of(d.operands[0].reg.value);
    const bool is_copy = d.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
    const auto& memory = d.operands[1].mem;
    const ZydisRegister base = is_copy ? kStack : memory.base;
    const std::int64_t distance = is_copy ? 0 : memory.disp.value;
    const bool indexed = !is_copy && memory.index != ZYDIS_REGISTER_NONE;
    if (to == kRegisters) return false;
    if (indexed && (is_of_frame(memory.index) || near_.has(number_of(memory.index)))) return false;
    if (d.is_register(0, kStack)) return !indexed && (whole(base) == kStack || whole(base) == kFrame);
    std::optional<std::int64_t> below;
    if (base != ZYDIS_REGISTER_NONE && is_of_frame(base)) {
      below = below_cfa(base, distance);
      if (!below) return false;
    } else if (const std::size_t from = number_of(base); near_.has(from)) {
      below = near_.at(from) + distance;
    }
    if (below && (indexed || *below >= -kWord)) return false;
    if (below && *below >= -kNearCfa)
      near_.set(to, *below);
    else
      near_.forget(to);
    return true;
  }

  /// What of the stack pointer's uses leaves it one: room is made or given back, or it is compared.
  bool is_usual(const Decoded& d) const {
    switch (d.i.mnemonic) {
      case ZYDIS_MNEMONIC_ADD:
      case ZYDIS_MNEMONIC_SUB:
      case ZYDIS_MNEMONIC_AND:
        return d.is_register(0, kStack) && !d.is_register(1, kStack);
      case ZYDIS_MNEMONIC_MOV:
        return d.is_register(0, kStack) && d.is_register(1, kFrame) && !is_frame_free();
      case ZYDIS_MNEMONIC_CMP:
      case ZYDIS_MNEMONIC_TEST:
        return true;
      default:
        return false;
    }
  }

  /// False: the stack pointer, or rbp as the frame's, becomes a number that may lead anywhere; or it is another one.
  bool keeps_stack_pointer(const Decoded& d, std::uint64_t next) const {
    for (const ZydisDecodedOperand& operand : d.all()) {
      if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
      const ZydisRegister reg = whole(operand.reg.value);
      if (reg == kStack && !is_usual(d)) {
        const bool begins_frame = d.i.mnemonic == ZYDIS_MNEMONIC_MOV && d.is_register(0, kFrame);
        if (!begins_frame || !frames_.has_frame_pointer(next)) return false;
      }
      const bool reads = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
      if (reg == kFrame && reads && d.i.mnemonic != ZYDIS_MNEMONIC_PUSH && !is_usual(d) && !is_frame_free())
        return false;
    }
    return true;
  }

  /// False: an address near the CFA is counted with, or leaves the registers.
  bool use_registers(const Decoded& d) {
    const bool is_move = d.i.mnemonic == ZYDIS_MNEMONIC_MOV || d.i.meta.category == ZYDIS_CATEGORY_CMOV;
    const std::size_t to =
        d.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(d.operands[0].reg.value) : kRegisters;
    const bool clears = d.i.mnemonic == ZYDIS_MNEMONIC_XOR && to != kRegisters &&
                        d.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER && number_of(d.operands[1].reg.value) == to;
    std::optional<std::int64_t> moved;
    for (const ZydisDecodedOperand& operand : d.all()) {
      if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER || (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) == 0)
        continue;
      const std::size_t reg = number_of(operand.reg.value);
      if (!near_.has(reg) || clears || is_usual(d)) continue;
      if (!is_move || to == kRegisters) return false;
      moved = std::max(moved.value_or(near_.at(reg)), near_.at(reg));
    }
    if (d.i.meta.category == ZYDIS_CATEGORY_CALL) near_.called();
    // Those that are not seen: of multiplications, of text instructions and such. Both were arguments or results.
    for (std::size_t n = 0; n < d.i.operand_count; ++n) {
      const ZydisDecodedOperand& operand = d.operands[n];
      if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
      const std::size_t reg = number_of(operand.reg.value);
      if (reg == number_of(kStack)) continue;
      if (n >= d.i.operand_count_visible && (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 && near_.has(reg))
        return false;
      if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 && d.i.meta.category != ZYDIS_CATEGORY_CMOV)
        near_.forget(reg);
    }
    if (moved) near_.set(to, *moved);
    return true;
  }

  const Frames& frames_;
  Near near_;
  std::uint64_t address_ = 0;
};

}  // namespace

// The data flow of addresses near the CFA is followed to where it adds nothing any more. Where code begins that no jump
// with a known target leads to (of a table, of an exception), all that was ever in a register may be in it.
StackArguments::Looked StackArguments::look_anew(std::size_t frame) {
  const Range code = frames_.all()[frame].code;
  Looked found;
  if (code.end - code.begin > kMostOfFunction || (bytes_ += code.end - code.begin) > kMostBytes) return found;
  // Of a jump to anywhere: where the stack is as it was when the function was called, it may be left by that.
  const auto may_leave = [&](const Decoded& jump, std::uint64_t at) {
    const ZydisDecodedOperand& to = jump.operands[0];
    if (to.type == ZYDIS_OPERAND_TYPE_MEMORY && to.mem.base == ZYDIS_REGISTER_RIP) {
      const std::uint64_t word = at + jump.i.length + static_cast<std::uint64_t>(to.mem.disp.value);
      if (callees_.is_known_at(word)) return false;
    }
    if (frames_.has_frame_pointer(at)) return false;
    const auto depth = frames_.depth(at);
    return !depth || *depth == kCalledDepth;
  };
  const auto leads_on = [&](std::uint64_t target) {
    // What leads out of the module is known by its name alone.
    if (callees_.is_known_by(target)) return true;
    const auto next = frames_.find(target);
    if (next) found.next.push_back(*next);
    return next.has_value();
  };
  std::map<std::uint64_t, Near> at_target;
  Near ever;
  Decoded d;
  constexpr int kMostRounds = 8;
  bool changed = true;
  for (int round = 0; changed; ++round) {
    if (round == kMostRounds) return found;
    changed = false;
    found.next.clear();
    Follower follower(frames_);
    bool flows = true;
    for (std::uint64_t at = code.begin; at < code.end; at += d.i.length) {
      const auto bytes = image_.from(at);
      if (!d.decode(bytes.first(std::min<std::size_t>(bytes.size(), code.end - at)))) return found;
      const auto target_here = at_target.find(at);
      if (!flows && target_here == at_target.end()) follower.near().join(ever);
      if (target_here != at_target.end()) follower.near().join(target_here->second);
      flows = true;
      if (!follower.step(d, at)) return found;
      changed = ever.join(follower.near()) || changed;
      const bool ends = d.i.meta.category == ZYDIS_CATEGORY_RET || d.i.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
      if (ends || d.i.meta.category == ZYDIS_CATEGORY_COND_BR) {
        if (d.i.raw.imm[0].is_relative != ZYAN_FALSE) {
          const std::uint64_t target = at + d.i.length + static_cast<std::uint64_t>(d.i.raw.imm[0].value.s);
          if (!code.contains(target)) {
            if (!leads_on(target)) return found;
          } else {
            changed = at_target[target].join(follower.near()) || changed;
          }
        } else if (d.i.meta.category != ZYDIS_CATEGORY_RET && may_leave(d, at)) {
          return found;
        }
      }
      if (!ends) continue;
      flows = false;
      follower.near().forget_all();
    }
  }
  found.takes_none = true;
  return found;
}

const StackArguments::Looked& StackArguments::look(std::size_t frame) {
  const auto known = looked_.find(frame);
  return known != looked_.end() ? known->second : looked_.emplace(frame, look_anew(frame)).first->second;
}

bool StackArguments::takes_none(std::uint64_t function) {
  const auto first = frames_.find(function);
  if (!first || frames_.all()[*first].code.begin != function) return false;
  std::set<std::size_t> seen = {*first};
  std::vector<std::size_t> ahead = {*first};
  while (!ahead.empty()) {
    const std::size_t frame = ahead.back();
    ahead.pop_back();
    const Looked& looked = look(frame);
    if (!looked.takes_none) return false;
    for (const std::size_t next : looked.next)
      if (seen.insert(next).second) ahead.push_back(next);
    if (seen.size() > kMostFrames) return false;
  }
  return true;
}

}  // namespace karst::patch
