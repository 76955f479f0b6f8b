// SPDX-License-Identifier: MIT
#include "patch/flow.h"

#include <algorithm>
#include <array>

#include "patch/zydis.h"

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
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  const auto bytes = code_.bytes(address(f, i), i.size);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis(), bytes.data(), bytes.size(), &in, operands)) ||
      in.mnemonic == ZYDIS_MNEMONIC_STD)
    return BeforeEntry::kNever;
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

}  // namespace karst::patch
