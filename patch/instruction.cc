// SPDX-License-Identifier: MIT
#include "patch/instruction.h"

#include <algorithm>
#include <cstring>

#include "patch/zydis.h"

namespace karst::patch {
namespace {

/// Instructions that a compiler's function may have and that must not be executed elsewhere.
bool stays(const ZydisDecodedInstruction& i) {
  switch (i.meta.category) {
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_COND_BR:    // that are none of the forms known here
    case ZYDIS_CATEGORY_UNCOND_BR:  // xabort and the like
      return true;
    default:
      return i.mnemonic == ZYDIS_MNEMONIC_XBEGIN || i.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
  }
}

Kind kind_of(const ZydisDecodedInstruction& i) {
  const bool is_relative = i.raw.imm[0].is_relative != ZYAN_FALSE;
  switch (i.mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_INT3:
      return Kind::kPadding;
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
      return Kind::kStop;
    case ZYDIS_MNEMONIC_RET:
      return Kind::kReturn;
    case ZYDIS_MNEMONIC_CALL:
      return is_relative ? Kind::kCall : Kind::kCallAnywhere;
    case ZYDIS_MNEMONIC_JMP:
      return i.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? Kind::kFixed
             : is_relative                               ? Kind::kJump
                                                         : Kind::kJumpAnywhere;
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
      return Kind::kShortJumpIf;
    default:
      break;
  }
  if (i.meta.category == ZYDIS_CATEGORY_COND_BR && is_relative) return Kind::kJumpIf;
  if (stays(i) || is_relative) return Kind::kFixed;
  return (i.attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0 ? Kind::kRelative : Kind::kPlain;
}

/// Reads the number that guards stacks, at %fs:0x28: no thread is without it.
bool reads_stack_guard(const ZydisDecodedInstruction& i) {
  constexpr std::int64_t kGuard = 0x28;
  constexpr unsigned kNone = 4;    // of an index
  constexpr unsigned kNoBase = 5;  // with mode 0
  return (i.attributes & ZYDIS_ATTRIB_HAS_SEGMENT_FS) != 0 && (i.attributes & ZYDIS_ATTRIB_HAS_SIB) != 0 &&
         i.raw.modrm.mod == 0 && i.raw.sib.base == kNoBase && i.raw.sib.index == kNone && i.raw.disp.value == kGuard;
}

constexpr unsigned kFrame = 5;  // of a base: rbp, or with mode 0 rip

/// A fault is where the program's own handlers, and exceptions that they throw, look for the instruction.
bool may_fault(const ZydisDecodedInstruction& i) {
  constexpr unsigned kRegister = 3;
  constexpr unsigned kStack = 4;  // of a base: rsp
  if (i.mnemonic == ZYDIS_MNEMONIC_DIV || i.mnemonic == ZYDIS_MNEMONIC_IDIV ||
      i.meta.category == ZYDIS_CATEGORY_STRINGOP)
    return true;
  if ((i.attributes & ZYDIS_ATTRIB_HAS_MODRM) == 0 || i.raw.modrm.mod == kRegister ||
      i.mnemonic == ZYDIS_MNEMONIC_LEA || i.mnemonic == ZYDIS_MNEMONIC_NOP || reads_stack_guard(i))
    return false;
  if ((i.attributes & ZYDIS_ATTRIB_HAS_SIB) != 0) return i.raw.sib.base != kStack || i.raw.sib.index != kStack;
  return i.raw.modrm.rm != kFrame;
}

bool is_by_frame(const ZydisDecodedInstruction& i) {
  return (i.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && (i.raw.modrm.mod == 1 || i.raw.modrm.mod == 2) &&
         i.raw.modrm.rm == kFrame && i.mnemonic != ZYDIS_MNEMONIC_LEA && i.mnemonic != ZYDIS_MNEMONIC_NOP;
}

bool saves_stack_pointer(const ZydisDecodedInstruction& i) {
  constexpr unsigned kRegister = 3;
  constexpr unsigned kStack = 4;
  return i.mnemonic == ZYDIS_MNEMONIC_MOV && i.opcode == 0x89 && i.raw.modrm.reg == kStack &&
         i.raw.modrm.mod != kRegister && i.raw.rex.W == 1 && i.raw.rex.R == 0;
}

constexpr ZydisAccessedFlagsMask kArithmeticFlags =
    ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;

bool is_rip_relative(const ZydisDecodedInstruction& i) {
  return (i.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && i.raw.modrm.mod == 0 && i.raw.modrm.rm == kFrame;
}

/// How many bytes of it come before its first number.
std::size_t bytes_before_numbers(const ZydisDecodedInstruction& i) {
  std::size_t before = i.length;
  if (i.raw.disp.size != 0) before = std::min<std::size_t>(before, i.raw.disp.offset);
  if (i.raw.imm[0].size != 0) before = std::min<std::size_t>(before, i.raw.imm[0].offset);
  return before;
}

/// Its numbers say nothing of what it is. Not so where they choose among instructions, or among places in memory.
bool is_known_by_its_shape(const ZydisDecodedInstruction& i) {
  const bool is_usual = i.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY || i.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
  return is_usual && i.opcode_map != ZYDIS_OPCODE_MAP_0F0F && (i.attributes & ZYDIS_ATTRIB_HAS_SEGMENT_FS) == 0;
}

/// The address that stands in the instruction as a distance from its end.
std::uint64_t target_of(std::span<const std::byte> bytes, std::uint64_t address, const Instruction& i,
                        std::size_t number_size) {
  std::uint32_t number = 0;
  std::memcpy(&number, &bytes[i.field], number_size);
  const std::size_t unused = 8 * (sizeof number - number_size);
  const std::int64_t distance = static_cast<std::int32_t>(number << unused) >> unused;
  return address + i.size + static_cast<std::uint64_t>(distance);
}

}  // namespace

Decoder& Decoder::of_thread() {
  static thread_local Decoder decoder;
  return decoder;
}

const Decoder::Shape* Decoder::find(std::span<const std::byte> bytes) const {
  if (nodes_.empty()) return nullptr;
  std::uint32_t next = 0;
  for (const std::byte byte : bytes) {
    next = nodes_[next][static_cast<std::uint8_t>(byte)];
    if (next == 0) return nullptr;
    if ((next & kLeaf) == 0) continue;
    const Shape& shape = shapes_[next & ~kLeaf];
    return shape.instruction.size <= bytes.size() ? &shape : nullptr;
  }
  return nullptr;
}

void Decoder::keep(std::span<const std::byte> bytes, const Shape& shape) {
  if (nodes_.size() + bytes.size() > most_nodes_) return;
  if (nodes_.empty()) {
    nodes_.reserve(most_nodes_);  // what is not used costs no memory
    nodes_.emplace_back();
  }
  std::uint32_t at = 0;
  for (const std::byte byte : bytes.first(bytes.size() - 1)) {
    const auto n = static_cast<std::uint8_t>(byte);
    if (nodes_[at][n] == 0) {
      nodes_[at][n] = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    at = nodes_[at][n];
  }
  nodes_[at][static_cast<std::uint8_t>(bytes.back())] = kLeaf | static_cast<std::uint32_t>(shapes_.size());
  shapes_.push_back(shape);
}

std::optional<Instruction> Decoder::decode(std::span<const std::byte> bytes, std::uint64_t address) {
  if (const Shape* known = find(bytes)) {
    Instruction in = known->instruction;
    if (in.field != 0) in.target = target_of(bytes, address, in, known->number_size);
    return in;
  }
  ZydisDecodedInstruction i;
  if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&zydis(), nullptr, bytes.data(), bytes.size(), &i)))
    return std::nullopt;
  Instruction in;
  in.size = i.length & 0xf;
  in.kind = kind_of(i);
  in.may_fault = may_fault(i);
  in.by_frame = is_by_frame(i);
  in.saves_stack_pointer = saves_stack_pointer(i);
  if (i.cpu_flags != nullptr) {
    // Who saves them all means no one of them.
    in.reads_flags = (i.cpu_flags->tested & kArithmeticFlags) != 0 && i.mnemonic != ZYDIS_MNEMONIC_PUSHFQ;
    in.writes_flags = ((i.cpu_flags->modified | i.cpu_flags->set_0 | i.cpu_flags->set_1 | i.cpu_flags->undefined) &
                       kArithmeticFlags) != 0;
  }
  in.ends_flow =
      in.kind == Kind::kJump || in.kind == Kind::kJumpAnywhere || in.kind == Kind::kReturn || in.kind == Kind::kStop;
  std::uint8_t number_bits = 0;
  std::int64_t distance = 0;
  if (i.raw.imm[0].is_relative != ZYAN_FALSE) {
    in.field = i.raw.imm[0].offset & 0xf;
    number_bits = i.raw.imm[0].size;
    distance = i.raw.imm[0].value.s;
  } else if (is_rip_relative(i)) {
    in.field = i.raw.disp.offset & 0xf;
    number_bits = i.raw.disp.size;
    distance = i.raw.disp.value;
  }
  if (is_known_by_its_shape(i) && (in.field == 0 || number_bits == 8 || number_bits == 32))
    keep(bytes.first(bytes_before_numbers(i)), {in, static_cast<std::uint8_t>(number_bits / 8)});
  if (in.field != 0) in.target = address + i.length + static_cast<std::uint64_t>(distance);
  return in;
}

}  // namespace karst::patch
