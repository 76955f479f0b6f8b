#include "patch/flow.h"

#include <Zydis/Decoder.h>

#include <algorithm>
#include <array>

namespace karst::patch {

bool Flow::may_move(std::size_t f, const Instruction& i) const {
  if (i.may_fault || (i.by_frame && !frames_.has_frame_pointer(address(f, i)))) return false;
  switch (i.kind) {
    case Kind::kPlain:
    case Kind::kRelative:
    case Kind::kJump:
    case Kind::kJumpIf:
    case Kind::kPadding:
      return true;
    default:
      return false;
  }
}

bool Flow::has_mark(std::uint64_t address) const {
  constexpr std::array<std::byte, kEndbr64Size> kMark{std::byte{0xf3}, std::byte{0x0f}, std::byte{0x1e},
                                                      std::byte{0xfa}};
  const auto bytes = code_.bytes(address, kEndbr64Size);
  return std::equal(bytes.begin(), bytes.end(), kMark.begin(), kMark.end());
}

std::size_t Flow::first_of(std::size_t f) const {
  return has_mark(frame(f).code.begin) && code_.of(f).size() > 1 ? 1 : 0;
}

Flow::BeforeEntry Flow::before_entry(std::size_t f, std::size_t n) const {
  const Instruction& i = code_.of(f)[n];
  if (i.kind != Kind::kPlain && i.kind != Kind::kRelative) return BeforeEntry::kNever;
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  const auto bytes = code_.bytes(address(f, i), i.size);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &in, operands)) ||
      in.mnemonic == ZYDIS_MNEMONIC_STD)
    return BeforeEntry::kNever;
  const auto whole = [](ZydisRegister r) { return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r); };
  bool changed = false;
  for (std::size_t o = 0; o < in.operand_count; ++o) {
    const ZydisDecodedOperand& operand = operands[o];
    // What lies below the stack pointer is the function's, and the hook's frame would lie there, too.
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
        (whole(operand.mem.base) == ZYDIS_REGISTER_RSP || whole(operand.mem.index) == ZYDIS_REGISTER_RSP))
      return BeforeEntry::kNever;
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    const ZydisRegister r = whole(operand.reg.value);
    if (r == ZYDIS_REGISTER_RSP) return BeforeEntry::kNever;
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    switch (ZydisRegisterGetClass(operand.reg.value)) {
      case ZYDIS_REGCLASS_GPR8:
      case ZYDIS_REGCLASS_GPR16:
      case ZYDIS_REGCLASS_GPR32:
      case ZYDIS_REGCLASS_GPR64:
        changed = changed || (r != ZYDIS_REGISTER_RAX && r != ZYDIS_REGISTER_R10 && r != ZYDIS_REGISTER_R11);
        break;
      case ZYDIS_REGCLASS_FLAGS:
      case ZYDIS_REGCLASS_XMM:
      case ZYDIS_REGCLASS_YMM:
      case ZYDIS_REGCLASS_ZMM:
        changed = true;
        break;
      default:
        return BeforeEntry::kNever;
    }
  }
  return changed ? BeforeEntry::kChanged : BeforeEntry::kAsCalled;
}

std::optional<bool> Flow::leaves_by(std::size_t f, std::size_t n) const {
  const auto instructions = code_.of(f);
  const std::uint64_t at = address(f, instructions[n]);
  const bool by_table = code_.has_table(f);
  if (frames_.depth(at) != kCalledDepth) return by_table ? std::optional(false) : std::nullopt;
  switch (source(f, n)) {
    case Source::kPointer:
      return true;
    case Source::kTable:
      return by_table ? std::optional(false) : std::nullopt;
    case Source::kUnknown:
      return by_table ? std::nullopt : std::optional(true);
  }
  return std::nullopt;
}

/// Where the address comes from, as far as the instructions before the jump show it.
Flow::Source Flow::source(std::size_t f, std::size_t n) const {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  const auto instructions = code_.of(f);
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  const auto decode = [&](const Instruction& i) {
    const auto bytes = code_.bytes(address(f, i), i.size);
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &in, operands));
  };
  if (!decode(instructions[n])) return Source::kUnknown;
  if ((in.attributes & ZYDIS_ATTRIB_HAS_NOTRACK) != 0) return Source::kTable;
  const auto of_memory = [&](const ZydisDecodedOperand& o) {
    if (o.mem.index == ZYDIS_REGISTER_NONE) return Source::kPointer;
    // Whole addresses: of functions, if none leads into this one; or if the table says so, where its place is known.
    if (!code_.has_labels(f)) return Source::kPointer;
    const bool is_known = o.mem.base == ZYDIS_REGISTER_NONE && o.mem.disp.has_displacement != ZYAN_FALSE;
    const auto table = static_cast<std::uint64_t>(o.mem.disp.value);
    return is_known && code_.leads_into(f, table) == false ? Source::kPointer : Source::kTable;
  };
  if (operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY) return of_memory(operands[0]);
  if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER) return Source::kUnknown;
  constexpr std::size_t kFarBack = 24;
  const std::size_t first = n < kFarBack ? 0 : n - kFarBack;
  // The last instruction before `m` that sets the register by its first operand; none: it was not found.
  const auto setter = [&](std::size_t m, ZydisRegister wanted) -> std::optional<std::size_t> {
    while (m-- > first) {
      const Instruction& i = instructions[m];
      if (i.ends_flow || is_call(i) || !decode(i)) return std::nullopt;
      if (in.operand_count_visible != 0 && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
          (operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
          ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operands[0].reg.value) == wanted)
        return m;
    }
    return std::nullopt;
  };
  // What a register holds that is added to another: a distance of a table, or one in the code (-mcmodel=large), from
  // the global offset table to a function or label.
  const auto added = [&](std::size_t m, ZydisRegister wanted) {
    constexpr std::uint8_t kWhole = 64;
    if (!setter(m, wanted)) return Source::kUnknown;
    const bool is_read = operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[1].mem.index != ZYDIS_REGISTER_NONE;
    if (in.mnemonic == ZYDIS_MNEMONIC_MOVSXD || (in.mnemonic != ZYDIS_MNEMONIC_LEA && is_read)) return Source::kTable;
    if (in.mnemonic != ZYDIS_MNEMONIC_MOV || in.raw.imm[0].size != kWhole || code_.has_labels(f))
      return Source::kUnknown;
    return Source::kPointer;
  };
  ZydisRegister wanted = operands[0].reg.value;
  for (std::size_t m = n; const auto set = setter(m, wanted);) {
    m = *set;
    const ZydisDecodedOperand from = operands[1];
    if (in.mnemonic == ZYDIS_MNEMONIC_MOVSXD) return Source::kTable;
    if (in.mnemonic == ZYDIS_MNEMONIC_ADD) {
      if (from.type != ZYDIS_OPERAND_TYPE_REGISTER) return Source::kTable;
      const Source to = added(m, wanted);
      return to != Source::kUnknown ? to : added(m, from.reg.value);
    }
    if (in.mnemonic != ZYDIS_MNEMONIC_MOV) return Source::kUnknown;
    if (from.type == ZYDIS_OPERAND_TYPE_MEMORY) return of_memory(from);
    if (from.type != ZYDIS_OPERAND_TYPE_REGISTER) return Source::kUnknown;
    wanted = from.reg.value;
  }
  return Source::kUnknown;
}

}  // namespace karst::patch
