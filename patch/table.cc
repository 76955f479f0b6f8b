// SPDX-License-Identifier: MIT
// Writes stubs. Each begins at a multiple of 16 bytes, as functions do; a sled begins at an even address, so that it
// can be changed while threads execute it (arch/arch.h).
#include "patch/table.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "format/patch_table.h"
#include "format/sled_note.h"

namespace karst::patch {
namespace {

using namespace format;

constexpr std::size_t kStubAlignment = 16;
constexpr std::uint8_t kSled[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
constexpr std::uint8_t kNop = 0x90;
constexpr std::uint8_t kTrap = 0xcc;
constexpr std::uint8_t kJump = 0xe9;       // jmp rel32
constexpr std::uint8_t kShortJump = 0xeb;  // jmp rel8
constexpr std::size_t kProbeSlots = 16;    // bytes: kPatchHookSlot, kPatchProbesSlot

class TableMaker {
 public:
  TableMaker(const Code& code, bool has_probes) : code_(code), stubs_(has_probes ? kProbeSlots : 0) {}

  void add(const Function& function) {
    const std::uint32_t number = functions_++;
    for (const Stub& stub : function.stubs) {
      while (stubs_.size() % kStubAlignment != 0) stubs_.push_back(kTrap);
      const auto begin = static_cast<std::uint32_t>(stubs_.size());
      switch (stub.what) {
        case Stub::What::kEntry:
          sled(SledKind::kEntry, function.code.begin);
          if (function.is_late) sleds_.back().kind |= kPatchSledLate;
          if (stub.leaves) {
            exit(stub, function.code.begin);
            break;
          }
          for (const Instruction& i : stub.moved) move(stub, i);
          jump(stub.moved.empty() ? stub.target : stub.to);
          break;
        case Stub::What::kReturn:
        case Stub::What::kTail:
          exit(stub, function.code.begin);
          break;
        case Stub::What::kMoved:
          for (const Instruction& i : stub.moved) move(stub, i);
          jump(stub.to);
          break;
        case Stub::What::kProbe:  // these are of no function
        case Stub::What::kDetour:
          break;
      }
      lead_to(begin, stub, number);
    }
    for (const std::uint64_t part : function.parts)
      sleds_.push_back({0, static_cast<std::uint32_t>(SledKind::kCold), part});
  }

  /// A function that was wanted.
  void leave_alone() { ++left_alone_; }

  /// After all functions. Places that are set come behind the landing that they are of.
  void add(const ProbeEntry& entry) {
    const Stub& stub = entry.place.stub;
    while (stubs_.size() % kStubAlignment != 0) stubs_.push_back(kTrap);
    const auto begin = static_cast<std::uint32_t>(stubs_.size());
    for (std::size_t n = 0; n < stub.before; ++n) move(stub, stub.moved[n]);
    // A call has put its return address there: it lies in the red zone meanwhile.
    const bool is_called = stub.jump.how == Jump::How::kRedirect;
    if (is_called) put({0x48, 0x8d, 0x64, 0x24, 8});  // lea 8(%rsp), %rsp
    call_hook(static_cast<std::uint32_t>(probes_.size()));
    if (is_called) put({0x48, 0x8d, 0x64, 0x24, static_cast<std::uint8_t>(-8)});
    for (std::size_t n = stub.before; n < stub.moved.size(); ++n) move(stub, stub.moved[n]);
    if (is_called)
      jump(stub.target);
    else if (!stub.moved.back().ends_flow)
      jump(stub.to);
    PatchProbe probe{};
    probe.kind = entry.place.kind;
    if (probe.kind != PatchProbeKind::kSetsPlace) written_with_ = static_cast<std::uint32_t>(probes_.size());
    lead_to(begin, stub, functions_ + written_with_);
    probe.semaphore = entry.note.semaphore;
    probe.name = add_text(probe.kind == PatchProbeKind::kNote ? entry.note.full_name() : std::string());
    probe.description = add_text(entry.values.description);
    probe.values = static_cast<std::uint32_t>(entry.values.ops.size());
    std::copy(entry.values.ops.begin(), entry.values.ops.end(), std::begin(probe.ops));
    probes_.push_back(probe);
  }

  /// After all probes.
  void add(const DetourEntry& detour) {
    const Stub& stub = detour.place.stub;
    while (stubs_.size() % kStubAlignment != 0) stubs_.push_back(kTrap);
    put({kTrap, kTrap, 0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});  // jmp *0(%rip)
    static_assert(kPatchDetourJump == 16 && kPatchDetourJump % kStubAlignment == 0);
    const auto begin = static_cast<std::uint32_t>(stubs_.size());
    put({0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0});  // a NOP of 8 bytes
    for (const Instruction& i : stub.moved) move(stub, i);
    if (!stub.moved.back().ends_flow) jump(stub.to);
    lead_to(begin, stub,
            functions_ + static_cast<std::uint32_t>(probes_.size()) + static_cast<std::uint32_t>(detours_.size()));
    detours_.push_back({detour.place.function, begin, add_text(detour.name)});
  }

  std::vector<std::byte> finish(const ElfImage& image) const {
    PatchTable table{};
    table.magic = kPatchTableMagic;
    table.version = kPatchTableVersion;
    table.functions = functions_;
    table.sleds = static_cast<std::uint32_t>(sleds_.size());
    table.jumps = static_cast<std::uint32_t>(jumps_.size());
    table.fixups = static_cast<std::uint32_t>(fixups_.size());
    table.probes = static_cast<std::uint32_t>(probes_.size());
    table.detours = static_cast<std::uint32_t>(detours_.size());
    table.left_alone = left_alone_;
    table.text_size = static_cast<std::uint32_t>(text_.size());
    table.code_size = stubs_.size();
    table.code_begin = image.code().front().begin;
    for (const Range& r : image.code()) {
      table.code_begin = std::min(table.code_begin, r.begin);
      table.code_end = std::max(table.code_end, r.end);
    }
    std::vector<std::byte> bytes;
    const auto put = [&bytes](const void* from, std::size_t size) {
      const auto* begin = static_cast<const std::byte*>(from);
      bytes.insert(bytes.end(), begin, begin + size);
    };
    put(&table, sizeof table);
    put(probes_.data(), probes_.size() * sizeof probes_[0]);
    put(sleds_.data(), sleds_.size() * sizeof sleds_[0]);
    put(jumps_.data(), jumps_.size() * sizeof jumps_[0]);
    put(fixups_.data(), fixups_.size() * sizeof fixups_[0]);
    put(detours_.data(), detours_.size() * sizeof detours_[0]);
    put(stubs_.data(), stubs_.size());
    put(text_.data(), text_.size());
    return bytes;
  }

 private:
  void put(std::initializer_list<std::uint8_t> bytes) { stubs_.insert(stubs_.end(), bytes); }

  /// A distance of 32 bits to `target`, from the end of its field.
  void distance(std::uint64_t target) {
    fixups_.push_back({target, static_cast<std::uint32_t>(stubs_.size()), 0});
    put({0, 0, 0, 0});
  }

  void jump(std::uint64_t target) {
    put({kJump});
    distance(target);
  }

  /// What lies below the stack pointer may be the function's: the hook's frame begins under it. No flag is changed.
  void call_hook(std::uint32_t probe) {
    constexpr std::uint8_t kBack = KARST_PROBE_RED_ZONE + KARST_PROBE_PUSHED_BY_STUB - 8;
    put({0x48, 0x8d, 0x64, 0x24, static_cast<std::uint8_t>(-KARST_PROBE_RED_ZONE)});  // lea -128(%rsp), %rsp
    put({0x68});                                                                      // push $probe
    put32(probe);
    put({0xff, 0x35});  // push kPatchProbesSlot(%rip)
    put32(kPatchProbesSlot - static_cast<std::uint32_t>(stubs_.size() + 4));
    put({0xff, 0x15});  // call *kPatchHookSlot(%rip)
    put32(kPatchHookSlot - static_cast<std::uint32_t>(stubs_.size() + 4));
    put({0x48, 0x8d, 0xa4, 0x24, kBack, 0, 0, 0});  // lea 144(%rsp), %rsp
  }

  void put32(std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) stubs_.push_back(static_cast<std::uint8_t>(value >> shift));
  }

  std::uint32_t add_text(const std::string& text) {
    const auto at = static_cast<std::uint32_t>(text_.size());
    text_.append(text).push_back('\0');
    return at;
  }

  void sled(SledKind kind, std::uint64_t function) {
    if (stubs_.size() % 2 != 0) stubs_.push_back(kNop);
    sleds_.push_back({static_cast<std::uint32_t>(stubs_.size()), static_cast<std::uint32_t>(kind), function});
    stubs_.insert(stubs_.end(), std::begin(kSled), std::end(kSled));
  }

  void exit(const Stub& stub, std::uint64_t function) {
    const bool returns = stub.what == Stub::What::kReturn || stub.returns;
    for (std::size_t n = 0; n + 1 < stub.moved.size(); ++n) move(stub, stub.moved[n]);
    sled(returns ? SledKind::kReturn : stub.in_place ? SledKind::kRegisterTailCall : SledKind::kTailCall, function);
    if (stub.moved.empty())
      jump(stub.target);
    else
      move(stub, stub.moved.back());
  }

  /// The instruction, with the same effect at its new place.
  void move(const Stub& stub, const Instruction& i) {
    const auto bytes = code_.bytes(stub.from + i.offset, i.size);
    const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (i.kind == Kind::kJump) return jump(i.target);
    if (i.kind == Kind::kJumpIf) {
      // Behind prefixes: 70+cc rel8, or 0f 80+cc rel32. The condition is in the lower four bits of the last byte.
      put({0x0f, static_cast<std::uint8_t>(0x80 | (at[i.field - 1] & 0x0f))});
      return distance(i.target);
    }
    if (i.kind == Kind::kPadding) return;
    const std::size_t begin = stubs_.size();
    stubs_.insert(stubs_.end(), at, at + i.size);
    if (i.field == 0) return;
    // Behind the distance an operand may follow, from whose end the processor counts.
    const std::size_t behind = i.size - i.field - 4U;
    fixups_.push_back({i.target - behind, static_cast<std::uint32_t>(begin + i.field), 0});
  }

  void lead_to(std::uint32_t stub, const Stub& from, std::uint32_t function) {
    const Jump& j = from.jump;
    PatchJump jump{};
    jump.function = function;
    jump.address = j.at;
    const bool is_functions = from.what != Stub::What::kProbe && from.what != Stub::What::kDetour;
    jump.alone = is_functions && from.spare == 0 ? 1 : 0;
    switch (j.how) {
      case Jump::How::kDirect:
        return add_jump(jump, stub);
      case Jump::How::kRedirect: {
        const auto before = code_.bytes(j.at, j.field + 4U);
        jump.offset = stub;
        jump.size = static_cast<std::uint8_t>(before.size());
        jump.field = j.field;
        std::memcpy(jump.before, before.data(), before.size());
        std::memcpy(jump.after, before.data(), j.field);
        jumps_.push_back(jump);
        return;
      }
      case Jump::How::kByPadding: {
        // The long one first: when the short one is there, it must lead somewhere.
        PatchJump far = jump;
        far.address = j.padding;
        far.guard = j.guard;
        far.alone = 0;
        add_jump(far, stub);
        jump.size = static_cast<std::uint8_t>(j.short_size());
        const std::size_t opcode = jump.size - kShortJumpSize;
        jump.field = kPatchNoField;
        const auto before = code_.bytes(j.at, jump.size);
        std::memcpy(jump.before, before.data(), before.size());
        std::memcpy(jump.after, before.data(), before.size());
        if (!j.is_conditional) jump.after[0] = kShortJump;
        jump.after[opcode + 1] = static_cast<std::uint8_t>(j.padding - (j.at + jump.size));
        jumps_.push_back(jump);
        return;
      }
    }
  }

  void add_jump(PatchJump& jump, std::uint32_t stub) {
    jump.offset = stub;
    jump.size = kJumpSize;
    jump.field = 1;
    const auto before = code_.bytes(jump.address, kJumpSize);
    std::memcpy(jump.before, before.data(), before.size());
    jump.after[0] = kJump;
    jumps_.push_back(jump);
  }

  const Code& code_;
  std::uint32_t functions_ = 0;
  std::uint32_t left_alone_ = 0;
  std::vector<PatchSled> sleds_;
  std::vector<PatchJump> jumps_;
  std::vector<PatchFixup> fixups_;
  std::vector<PatchProbe> probes_;
  std::uint32_t written_with_ = 0;  // the last probe that is no place
  std::vector<PatchDetour> detours_;
  std::vector<std::uint8_t> stubs_;
  std::string text_;
};

}  // namespace

std::vector<std::byte> make_table(const ElfImage& image, const Code& code, std::span<const Function> functions,
                                  std::span<const ProbeEntry> probes, std::span<const DetourEntry> detours) {
  const auto is_in = [](const ProbeEntry& probe) { return probe.place.left_out == LeftOut::kNot; };
  TableMaker maker(code, std::any_of(probes.begin(), probes.end(), is_in));
  for (const Function& function : functions) {
    if (function.left_out == LeftOut::kNot)
      maker.add(function);
    else if (function.left_out != LeftOut::kSmall && !is_of_built(function.left_out))
      maker.leave_alone();
  }
  for (const ProbeEntry& probe : probes)
    if (is_in(probe)) maker.add(probe);
  for (const DetourEntry& detour : detours)
    if (detour.place.left_out == LeftOut::kNot) maker.add(detour);
  return maker.finish(image);
}

}  // namespace karst::patch
