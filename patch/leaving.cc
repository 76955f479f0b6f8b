// SPDX-License-Identifier: MIT
// Goes back from the jump through the instructions that lead to it, until what they compute is a place in the module:
// a table of addresses, a table of distances, or a number. Then its first entry tells.
#include "patch/leaving.h"

#include <algorithm>
#include <array>

#include "patch/zydis.h"

namespace karst::patch {
namespace {

// Beyond these an address is not known. Code of which more must be read for one jump was not met.
constexpr unsigned kMostSteps = 3000;
constexpr std::uint64_t kMostStepsOfModule = 1 << 24;  // so that a hostile file cannot keep us
constexpr unsigned kMostDepth = 40;
constexpr std::size_t kMostJumps = 4096;    // of one function
constexpr std::uint64_t kWord = 8;          // bytes
constexpr std::uint64_t kMostBefore = 256;  // words that an index begins behind: a character, or an operation's code

struct Decoded {
  ZydisDecodedInstruction in;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
};

bool decode(std::span<const std::byte> bytes, Decoded& decoded) {
  return ZYAN_SUCCESS(
      ZydisDecoderDecodeFull(&zydis(), bytes.data(), bytes.size(), &decoded.in, decoded.operands.data()));
}

bool is_kept_by_calls(int r) {
  return r == ZYDIS_REGISTER_RBX || r == ZYDIS_REGISTER_RBP || (r >= ZYDIS_REGISTER_R12 && r <= ZYDIS_REGISTER_R15);
}

bool writes(const Decoded& decoded, int wanted) {
  return std::any_of(decoded.operands.begin(), decoded.operands.begin() + decoded.in.operand_count,
                     [wanted](const ZydisDecodedOperand& o) {
                       return o.type == ZYDIS_OPERAND_TYPE_REGISTER && whole(o.reg.value) == wanted &&
                              (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
                     });
}

bool is_conditional_move(ZydisMnemonic m) { return m >= ZYDIS_MNEMONIC_CMOVB && m <= ZYDIS_MNEMONIC_CMOVZ; }

}  // namespace

std::optional<bool> Leaving::leaves(const std::vector<std::size_t>& all, std::size_t f, std::size_t n) {
  if (seen_.insert(all.front()).second) look(all);
  const auto found = known_.find({f, n});
  return found == known_.end() ? std::nullopt : found->second;
}

void Leaving::look(const std::vector<std::size_t>& all) {
  looked_ = {};
  looked_.all = &all;
  const bool by_table = std::any_of(all.begin(), all.end(), [&](std::size_t f) { return code_.has_table(f); });
  std::vector<Jump> open;
  for (const std::size_t f : all) {
    const auto instructions = code_.of(f);
    for (std::size_t n = 0; n < instructions.size(); ++n) {
      const Instruction& i = instructions[n];
      if (is_jump(i) && joined_.is_inside(i.target, all)) looked_.jumps_to[i.target].emplace_back(f, n);
      if (i.kind != Kind::kJumpAnywhere && !is_by_thunk(i)) continue;
      Decoded decoded;
      const std::uint64_t at = flow_.address(f, i);
      // With CET compilers mark those jumps alone whose table they have made themselves.
      const bool is_switch =
          decode(code_.bytes(at, i.size), decoded) && (decoded.in.attributes & ZYDIS_ATTRIB_HAS_NOTRACK) != 0;
      looked_.to_labels.emplace_back(f, n);
      if (is_switch || frames_.depth(at) != kCalledDepth)
        known_[{f, n}] = by_table ? std::optional(false) : std::nullopt;
      else
        open.emplace_back(f, n);
    }
  }
  if (open.empty() || looked_.to_labels.size() > kMostJumps) return;
  looked_.has_labels = has_labels(all);
  // What registers have behind a label is known better when it is known which jumps go to none.
  for (bool is_new = true; is_new && !open.empty();) {
    is_new = false;
    for (const Jump& jump : open)
      if (const Value target = target_of(jump.first, jump.second); target.is_known()) looked_.targets[jump] = target;
    std::erase_if(open, [&](const Jump& jump) {
      const auto target = looked_.targets.find(jump);
      const auto known = decide(target == looked_.targets.end() ? Value() : target->second);
      if (!known) return false;
      known_[jump] = known;
      if (*known) std::erase(looked_.to_labels, jump);
      return is_new = true;
    });
  }
}

bool Leaving::has_labels(const std::vector<std::size_t>& all) const {
  return std::any_of(all.begin(), all.end(), [&](std::size_t f) {
    const auto instructions = code_.of(f);
    return std::any_of(instructions.begin(), instructions.end(), [&](const Instruction& i) {
      const std::uint64_t at = flow_.address(f, i);
      return code_.is_label(at) && frames_.depth(at) == kCalledDepth;
    });
  });
}

std::optional<bool> Leaving::decide(const Value& target) {
  switch (target.kind) {
    case Value::Kind::kNumber:
      return looked_.has_labels ? decide_by_address(target.at) : std::optional(true);
    case Value::Kind::kSum: {
      const auto distance = target.is_known_base ? code_.number(target.table, target.size) : std::nullopt;
      return distance ? decide_by_address(target.base + static_cast<std::uint64_t>(*distance)) : std::nullopt;
    }
    case Value::Kind::kDistance:
      return std::nullopt;
    case Value::Kind::kWord:
      return looked_.has_labels ? decide_by_table(target) : std::optional(true);
    case Value::Kind::kUnknown:
    case Value::Kind::kAgain:
    case Value::Kind::kElement:
      return looked_.has_labels ? std::nullopt : std::optional(true);
  }
  return std::nullopt;
}

std::optional<bool> Leaving::decide_by_address(std::uint64_t address) const {
  const Leads to = leads(address);
  if (to == Leads::kInside) return false;
  return to == Leads::kOut ? std::optional(true) : std::nullopt;
}

std::optional<bool> Leaving::decide_by_table(const Value& word) {
  Leads first = word_leads(word.table);
  if (first == Leads::kNowhere) first = word_leads(word.at);
  if (first == Leads::kElsewhere) return std::nullopt;
  if (first == Leads::kNowhere) {
    // The table begins behind what the code names: its first index is not 0. Other tables may lie there, too.
    bool inside = false;
    bool out = false;
    for (std::uint64_t n = 0; word.is_indexed && n < kMostBefore; ++n) {
      const Leads to = word_leads(word.at + n * kWord);
      inside = inside || to == Leads::kInside;
      out = out || (to != Leads::kNowhere && to != Leads::kInside);
    }
    return inside == out ? std::nullopt : std::optional(out);
  }
  // What is named may also be a place before the table that is meant, where another one happens to lie.
  if (first == Leads::kInside)
    return word.table != word.at || !word.is_indexed || word_leads(word.at - kWord) != Leads::kInside
               ? std::optional(false)
               : std::nullopt;
  return is_every_label_explained() ? std::optional(true) : std::nullopt;
}

const std::set<std::uint64_t>& Leaving::label_words() {
  if (looked_.label_words) return *looked_.label_words;
  std::set<std::uint64_t>& words = looked_.label_words.emplace();
  for (const std::size_t f : *looked_.all)
    for (const auto& pointer : code_.pointers_into(flow_.frame(f).code))
      if (leads(pointer.to) == Leads::kInside) words.insert(pointer.at);
  return words;
}

/// Each table of labels is one that a jump names.
bool Leaving::is_every_label_explained() {
  const std::set<std::uint64_t>& places = label_words();
  for (auto place = places.begin(); place != places.end();) {
    const std::uint64_t begin = *place;
    std::uint64_t end = begin;
    for (; place != places.end() && *place == end; ++place) end += kWord;
    const bool is_named = std::any_of(looked_.targets.begin(), looked_.targets.end(), [&](const auto& target) {
      const auto& [jump, v] = target;
      if (v.kind != Value::Kind::kWord) return false;
      if ((v.table >= begin && v.table < end) || (v.at >= begin && v.at < end)) return true;
      const auto known = known_.find(jump);
      return known != known_.end() && known->second == false && v.is_indexed && begin - v.at < kMostBefore * kWord;
    });
    if (!is_named) return false;
  }
  return true;
}

Leaving::Leads Leaving::leads(std::uint64_t address) const {
  if (address == 0 || !code_.is_code(address)) return Leads::kNowhere;
  const auto f = frames_.find(address);
  if (!f || joined_.is_linkage(*f)) return Leads::kOut;
  const bool is_begin = flow_.frame(*f).code.begin == address;
  if (joined_.is_inside(address, *looked_.all)) {
    if (is_begin && *f == looked_.all->front()) return Leads::kOut;
    return frames_.depth(address) == kCalledDepth ? Leads::kInside : Leads::kElsewhere;
  }
  return is_begin ? Leads::kOut : Leads::kElsewhere;
}

Leaving::Leads Leaving::word_leads(std::uint64_t at) const {
  const auto to = code_.pointer_at(at);
  if (!to) return Leads::kNowhere;
  return *to == 0 ? Leads::kOut : leads(*to);
}

/// Where the jump goes to.
Leaving::Value Leaving::target_of(std::size_t f, std::size_t n) {
  Decoded decoded;
  const Instruction& i = code_.of(f)[n];
  if (!decode(code_.bytes(flow_.address(f, i), i.size), decoded)) return {};
  steps_ = 0;
  passed_.clear();
  if (is_jump(i)) return before(f, n, ZYDIS_REGISTER_RAX + code_.thunk(i.target).reg, 0);
  const ZydisDecodedOperand& to = decoded.operands[0];
  if (to.type == ZYDIS_OPERAND_TYPE_REGISTER) return before(f, n, whole(to.reg.value), 0);
  if (to.type != ZYDIS_OPERAND_TYPE_MEMORY) return {};
  const Memory memory{to.mem.base, to.mem.index, to.mem.scale, static_cast<std::uint64_t>(to.mem.disp.value)};
  return loaded(place(f, n, memory, 0), to.size);
}

/// What register `wanted` has when instruction `n` is about to be executed.
Leaving::Value Leaving::before(std::size_t f, std::size_t n, int wanted, unsigned depth) {
  if (depth == kMostDepth || wanted == ZYDIS_REGISTER_RSP) return {};
  const auto instructions = code_.of(f);
  for (;; --n) {
    if (++steps_ > kMostSteps || ++all_steps_ > kMostStepsOfModule) return {};
    const std::uint64_t at = flow_.address(f, instructions[n]);
    const bool is_joined = looked_.jumps_to.contains(at) || code_.is_label(at);
    if (is_joined && !passed_.emplace(at, wanted).second) return {Value::Kind::kAgain};
    const bool follows = n != 0 && !instructions[n - 1].ends_flow;
    Decoded decoded;
    bool sets = false;
    bool is_lost = !follows;
    if (follows) {
      const Instruction& last = instructions[n - 1];
      is_lost = (is_call(last) && !is_kept_by_calls(wanted)) ||
                !decode(code_.bytes(flow_.address(f, last), last.size), decoded);
      sets = !is_lost && !is_call(last) && writes(decoded, wanted);
    }
    if (!is_joined) {
      if (is_lost) return {};
      if (sets) return set_by(f, n - 1, wanted, depth);
      continue;
    }
    Value found;
    if (!is_lost) found = sets ? set_by(f, n - 1, wanted, depth) : before(f, n - 1, wanted, depth + 1);
    return found.is_known() ? found : by_other_ways(f, n, wanted, depth);
  }
}

/// The same by jumps to it. One that is known to go there is enough; of those that may go to any label all must agree.
Leaving::Value Leaving::by_other_ways(std::size_t f, std::size_t n, int wanted, unsigned depth) {
  const std::uint64_t at = flow_.address(f, code_.of(f)[n]);
  Value found{Value::Kind::kAgain};
  if (const auto jumps = looked_.jumps_to.find(at); jumps != looked_.jumps_to.end()) {
    for (const Jump& jump : jumps->second) {
      const Value v = before(jump.first, jump.second, wanted, depth + 1);
      if (v.is_known()) return v;
      if (v.kind == Value::Kind::kUnknown) found = v;
    }
  }
  if (!code_.is_label(at)) return found;
  if (found.kind == Value::Kind::kUnknown) return found;
  for (const Jump& jump : looked_.to_labels) {
    const Value v = before(jump.first, jump.second, wanted, depth + 1);
    if (v.kind == Value::Kind::kAgain) continue;
    if (!v.is_known() || (found.is_known() && !(v == found))) return {};
    found = v;
  }
  return found;
}

/// What instruction `n` puts into it.
Leaving::Value Leaving::set_by(std::size_t f, std::size_t n, int wanted, unsigned depth) {
  Decoded decoded;
  const Instruction& i = code_.of(f)[n];
  if (!decode(code_.bytes(flow_.address(f, i), i.size), decoded)) return {};
  const ZydisMnemonic mnemonic = decoded.in.mnemonic;
  const ZydisDecodedOperand& to = decoded.operands[0];
  const ZydisDecodedOperand& from = decoded.operands[1];
  if (mnemonic == ZYDIS_MNEMONIC_CDQE) return before(f, n, wanted, depth + 1);
  if (to.type != ZYDIS_OPERAND_TYPE_REGISTER || whole(to.reg.value) != wanted) return {};
  constexpr std::uint16_t kWide = 64;
  const auto value = [&]() -> Value {
    switch (from.type) {
      case ZYDIS_OPERAND_TYPE_REGISTER:
        return before(f, n, whole(from.reg.value), depth + 1);
      case ZYDIS_OPERAND_TYPE_IMMEDIATE: {
        const auto number =
            to.size == kWide ? static_cast<std::uint64_t>(from.imm.value.s) : from.imm.value.u & 0xffffffffU;
        return {Value::Kind::kNumber, false, false, kWord, number, number, 0};
      }
      case ZYDIS_OPERAND_TYPE_MEMORY: {
        const Memory memory{
            from.mem.base, from.mem.index, from.mem.scale,
            from.mem.base == ZYDIS_REGISTER_RIP ? i.target : static_cast<std::uint64_t>(from.mem.disp.value)};
        const Value at = place(f, n, memory, depth + 1);
        return mnemonic == ZYDIS_MNEMONIC_LEA ? at : loaded(at, from.size);
      }
      default:
        return {};
    }
  };
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVSXD:
      return value();
    case ZYDIS_MNEMONIC_ADD: {
      const Value other = value();
      return sum(before(f, n, wanted, depth + 1), other);
    }
    default:
      break;
  }
  if (!is_conditional_move(mnemonic)) return {};
  const Value other = value();
  return other.is_known() ? other : before(f, n, wanted, depth + 1);
}

Leaving::Value Leaving::place(std::size_t f, std::size_t n, const Memory& memory, unsigned depth) {
  const bool has_index = memory.index != ZYDIS_REGISTER_NONE;
  Value at{Value::Kind::kNumber, false, false, kWord, memory.distance, memory.distance, 0};
  if (memory.base == ZYDIS_REGISTER_RIP) {
    at.table = at.at = code_.of(f)[n].target;
    return at;
  }
  if (memory.base != ZYDIS_REGISTER_NONE) {
    at = before(f, n, whole(static_cast<ZydisRegister>(memory.base)), depth + 1);
    const bool is_place = at.kind == Value::Kind::kNumber || at.kind == Value::Kind::kElement;
    if (!is_place && has_index && memory.scale == 1) {
      at = before(f, n, whole(static_cast<ZydisRegister>(memory.index)), depth + 1);
      if (at.kind == Value::Kind::kNumber) at.kind = Value::Kind::kElement;
    }
    if (at.kind != Value::Kind::kNumber && at.kind != Value::Kind::kElement) return {};
    at.at += memory.distance;
  }
  if (has_index) at.kind = Value::Kind::kElement;
  return at;
}

Leaving::Value Leaving::loaded(const Value& place, std::uint16_t bits) {
  constexpr std::uint16_t kWide = 64;
  constexpr std::uint16_t kNarrow = 32;
  Value value = place;
  value.is_indexed = place.kind == Value::Kind::kElement;
  if (place.kind != Value::Kind::kNumber && place.kind != Value::Kind::kElement) return {};
  if (bits == kWide)
    value.kind = Value::Kind::kWord;
  else if (bits == kNarrow)
    value.kind = Value::Kind::kDistance;
  else
    return {};
  return value;
}

Leaving::Value Leaving::sum(const Value& a, const Value& b) {
  using Is = Value::Kind;
  if (a.kind != Is::kNumber && b.kind == Is::kNumber) return sum(b, a);
  const auto is_distance = [](const Value& v) { return v.kind == Is::kDistance || v.kind == Is::kWord; };
  Value value = a;
  if (a.kind != Is::kNumber) {
    // Of two numbers that are not known one is an index, if the other is the address of a table.
    if (a.kind == Is::kElement || b.kind == Is::kElement) return a.kind == Is::kElement ? a : b;
    value.kind = a.kind == Is::kDistance || b.kind == Is::kDistance ? Is::kDistance : Is::kUnknown;
    return value;
  }
  if (b.kind == Is::kNumber) {
    value.at += b.at;
    // A table's place may be made of two numbers: then neither is one. What an index begins with is small.
    constexpr std::uint64_t kSmall = kMostBefore * kWord;
    if (b.at + kSmall > 2 * kSmall) value.table = value.at;
    return value;
  }
  if (b.kind == Is::kAgain) return {};
  if (b.kind == Is::kElement) {
    value = b;
    value.at += a.at;
    return value;
  }
  if (is_distance(b)) {
    value = b;
    value.kind = Is::kSum;
    value.size = b.kind == Is::kDistance ? sizeof(std::int32_t) : kWord;
    value.base = a.at;
    value.is_known_base = b.is_indexed;
    return value;
  }
  value.kind = b.kind == Is::kUnknown ? Is::kElement : Is::kUnknown;
  return value;
}

}  // namespace karst::patch
