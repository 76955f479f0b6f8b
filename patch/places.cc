// First the frames are put together to functions: a part that a compiler split off is entered by jumps alone. Then each
// function gets its stubs, or the reason why not; short jumps come last, when it is known which padding is left.
#include "patch/places.h"

#include <Zydis/Decoder.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace karst::patch {
namespace {

constexpr std::int64_t kCalled = 8;  // the depth where a return address is on top of the stack
constexpr std::uint64_t kEndbr64 = 4;

class Finder {
 public:
  Finder(const Frames& frames, const Code& code, const PlaceOptions& options)
      : frames_(frames), code_(code), options_(options), taken_(code.no_addresses()) {}

  Places find() {
    join();
    Places found;
    for (const Range& range : options_.taken) take(range.begin, range.end);
    for (const std::uint64_t address : options_.detours) {
      has_detour_.insert(address);
      found.detours.push_back(look_at_detour(address));
    }
    for (const std::uint64_t address : options_.probes) found.probes.push_back(look_at_probe(address));
    auto& functions = found.functions;
    for (const auto& [owner, parts] : groups_) functions.push_back(look_at(owner, parts));
    settle_short_jumps(found);
    std::sort(functions.begin(), functions.end(),
              [](const Function& a, const Function& b) { return a.code.begin < b.code.begin; });
    return found;
  }

 private:
  const Frame& frame(std::size_t i) const { return frames_.all()[i]; }
  std::uint64_t address(std::size_t f, const Instruction& i) const { return frame(f).code.begin + i.offset; }

  std::size_t root(std::size_t f) {
    while (parent_[f] != f) f = parent_[f] = parent_[parent_[f]];
    return f;
  }

  static bool is_jump(const Instruction& i) {
    return i.kind == Kind::kJump || i.kind == Kind::kJumpIf || i.kind == Kind::kShortJumpIf;
  }

  static bool is_call(const Instruction& i) { return i.kind == Kind::kCall || i.kind == Kind::kCallAnywhere; }

  /// The linker's table of jumps out of the module (.plt and the like): jumps by addresses in memory, and what a loader
  /// needs that binds late. One frame has all of them, so a jump into its middle is a tail call.
  bool is_linkage(std::size_t f) const {
    const Range own = frame(f).code;
    bool leaves = false;
    for (const Instruction& i : code_.of(f)) {
      const auto bytes = code_.bytes(address(f, i), i.size);
      constexpr std::array<std::byte, kEndbr64> kMark{std::byte{0xf3}, std::byte{0x0f}, std::byte{0x1e},
                                                      std::byte{0xfa}};
      const bool is_mark = std::equal(bytes.begin(), bytes.end(), kMark.begin(), kMark.end());
      const bool is_push_of_number = bytes[0] == std::byte{0x68};
      const bool is_push_of_address = i.size == 6 && bytes[0] == std::byte{0xff} && bytes[1] == std::byte{0x35};
      const bool jumps_out = i.kind == Kind::kJumpAnywhere && i.target != 0;  // by its distance from here
      if (i.kind != Kind::kPadding && !is_mark && !is_push_of_number && !is_push_of_address && !jumps_out &&
          !(i.kind == Kind::kJump && own.contains(i.target)))
        return false;
      leaves = leaves || jumps_out;
    }
    return leaves;
  }

  /// Frames that jump into each other are one function.
  void join() {
    const std::size_t count = frames_.all().size();
    parent_.resize(count);
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    begins_called_.resize(count);
    is_linkage_.resize(count);
    for (std::size_t f = 0; f < count; ++f) is_linkage_[f] = is_linkage(f);
    for (std::size_t f = 0; f < count; ++f) begins_called_[f] = frames_.depth(frame(f).code.begin) == kCalled;
    for (std::size_t f = 0; f < count; ++f) {
      for (const Instruction& i : code_.of(f)) {
        if (!is_jump(i) || frame(f).code.contains(i.target)) continue;
        const auto to = frames_.find(i.target);
        if (!to) continue;
        if (is_linkage_[*to] && frames_.depth(address(f, i)) == kCalled) continue;
        const bool may_be_called = frame(*to).code.begin == i.target && begins_called_[*to] && !code_.is_cold(i.target);
        // A jump to the beginning of what is also called is a tail call.
        if (may_be_called && code_.is_entered(i.target)) continue;
        if (may_be_called && frames_.depth(address(f, i)) == kCalled && !is_reached_by(f, *to)) continue;
        parent_[root(f)] = root(*to);
      }
    }
    std::map<std::size_t, std::vector<std::size_t>> members;
    for (std::size_t f = 0; f < count; ++f) members[root(f)].push_back(f);
    for (auto& [top, all] : members) {
      std::size_t owner = all.front();
      std::size_t candidates = 0;
      for (const std::size_t f : all) {
        if (!begins_called_[f] || (all.size() > 1 && !code_.is_entered(frame(f).code.begin))) continue;
        if (candidates++ == 0) owner = f;
      }
      is_shared_[owner] = candidates > 1 || (all.size() > 1 && candidates == 0);
      for (const std::size_t f : all) parent_[f] = owner;
      std::erase(all, owner);
      groups_.emplace(owner, std::move(all));
    }
  }

  /// The frame's function, as frames: its owner first.
  std::vector<std::size_t> function_of(std::size_t f) const {
    std::vector<std::size_t> all = {parent_[f]};
    const std::vector<std::size_t>& parts = groups_.at(parent_[f]);
    all.insert(all.end(), parts.begin(), parts.end());
    return all;
  }

  /// `part` jumps back into the middle of `f`: it belongs to it.
  bool is_reached_by(std::size_t f, std::size_t part) const {
    const Range own = frame(f).code;
    return std::any_of(code_.of(part).begin(), code_.of(part).end(), [&](const Instruction& i) {
      return is_jump(i) && own.contains(i.target) && i.target != own.begin;
    });
  }

  bool is_wanted(std::uint64_t begin) const {
    return !options_.named || std::binary_search(options_.named->begin(), options_.named->end(), begin);
  }

  Function look_at(std::size_t owner, const std::vector<std::size_t>& parts) {
    Function function;
    function.code = frame(owner).code;
    if (has_detour_.contains(function.code.begin)) {
      function.left_out = LeftOut::kNoRoomAtEntry;
      return function;
    }
    if (!is_wanted(function.code.begin)) {
      function.left_out = LeftOut::kNotNamed;
      return function;
    }
    std::vector<std::size_t> all = {owner};
    all.insert(all.end(), parts.begin(), parts.end());
    for (const std::size_t part : parts) function.parts.push_back(frame(part).code.begin);
    function.left_out = reason(function, owner, all);
    if (function.left_out != LeftOut::kNot) function.stubs.clear();
    return function;
  }

  LeftOut reason(Function& function, std::size_t owner, const std::vector<std::size_t>& all) {
    if (!begins_called_[owner] || is_linkage_[owner] || code_.is_start(function.code.begin))
      return LeftOut::kUnusualFrame;
    if (const LeftOut why = unsound(all); why != LeftOut::kNot) return why;
    if (is_shared_[owner]) return LeftOut::kSharedCode;
    count(function, all);
    if (!options_.named && function.instructions < options_.min_instructions && !function.loops) return LeftOut::kSmall;
    if (const LeftOut why = add_entry(function, owner, all); why != LeftOut::kNot) return why;
    for (const std::size_t f : all)
      if (const LeftOut why = add_exits(function, f, all); why != LeftOut::kNot) return why;
    return LeftOut::kNot;
  }

  /// Why it is not known of each place in the function whether something goes to it.
  LeftOut unsound(const std::vector<std::size_t>& all) const {
    for (const std::size_t f : all) {
      if (code_.of(f).empty()) return LeftOut::kUnknownCode;
      if (!frames_.landing_pads(frame(f))) return LeftOut::kUnknownCleanups;
      if (code_.is_called_inside(f)) return LeftOut::kSharedCode;
    }
    return is_whole(all) ? LeftOut::kNot : LeftOut::kUnknownCode;
  }

  void count(Function& function, const std::vector<std::size_t>& all) const {
    for (const std::size_t f : all) {
      for (const Instruction& i : code_.of(f)) {
        function.instructions += i.kind != Kind::kPadding;
        function.loops =
            function.loops || (is_jump(i) && frame(f).code.contains(i.target) && i.target <= address(f, i));
      }
    }
  }

  /// Every jump within the function goes to the beginning of an instruction.
  bool is_whole(const std::vector<std::size_t>& all) const {
    for (const std::size_t f : all)
      for (const Instruction& i : code_.of(f))
        if (is_jump(i) && is_inside(i.target, all) && !is_instruction(i.target)) return false;
    return true;
  }

  bool is_inside(std::uint64_t target, const std::vector<std::size_t>& all) const {
    return std::any_of(all.begin(), all.end(), [&](std::size_t f) { return frame(f).code.contains(target); });
  }

  bool is_instruction(std::uint64_t at) const {
    const auto f = frames_.find(at);
    if (!f) return false;
    const auto all = code_.of(*f);
    const auto offset = static_cast<std::uint32_t>(at - frame(*f).code.begin);
    const auto found = std::lower_bound(all.begin(), all.end(), offset,
                                        [](const Instruction& i, std::uint32_t o) { return i.offset < o; });
    return found != all.end() && found->offset == offset;
  }

  static bool may_move(const Instruction& i) {
    if (i.may_fault) return false;
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

  LeftOut add_entry(Function& function, std::size_t owner, const std::vector<std::size_t>& all) {
    const auto instructions = code_.of(owner);
    std::size_t first = first_of(owner);
    const LeftOut why = add_entry_at(function, owner, all, first);
    // Many functions begin by reading their first argument, which may fault: that stays where it is, and the call is
    // recorded behind it.
    for (std::size_t n = 0;
         n < kMostBeforeEntry && first + 1 < instructions.size() && may_come_before_entry(owner, first); ++n) {
      ++first;
      if (code_.is_target(address(owner, instructions[first]))) break;
      if (why != LeftOut::kFixedEntry && why != LeftOut::kNoRoomAtEntry) break;
      if (add_entry_at(function, owner, all, first) == LeftOut::kNot) return LeftOut::kNot;
    }
    return why;
  }

  /// Behind endbr64, which indirect calls must find.
  std::size_t first_of(std::size_t owner) const {
    const auto head = code_.bytes(frame(owner).code.begin, kEndbr64);
    return head.size() == kEndbr64 && head[0] == std::byte{0xf3} && head[1] == std::byte{0x0f} &&
                   head[2] == std::byte{0x1e} && head[3] == std::byte{0xfa} && code_.of(owner).size() > 1
               ? 1
               : 0;
  }

  static constexpr std::size_t kMostBeforeEntry = 4;  // instructions

  /// A call may be recorded behind this instruction of its function: it leaves flags, arguments in registers and the
  /// stack pointer as they were.
  bool may_come_before_entry(std::size_t owner, std::size_t n) const {
    const Instruction& i = code_.of(owner)[n];
    if (i.kind != Kind::kPlain && i.kind != Kind::kRelative) return false;
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecodedInstruction in;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const auto bytes = code_.bytes(address(owner, i), i.size);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &in, operands))) return false;
    for (std::size_t o = 0; o < in.operand_count; ++o) {
      if (operands[o].type != ZYDIS_OPERAND_TYPE_REGISTER ||
          (operands[o].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0)
        continue;
      switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operands[o].reg.value)) {
        case ZYDIS_REGISTER_RAX:
        case ZYDIS_REGISTER_R10:
        case ZYDIS_REGISTER_R11:
          break;
        default:  // flags are among them
          return false;
      }
    }
    return true;
  }

  LeftOut add_entry_at(Function& function, std::size_t owner, const std::vector<std::size_t>& all, std::size_t first) {
    const auto instructions = code_.of(owner);
    const std::uint64_t begin = function.code.begin;
    const std::uint64_t at = begin + instructions[first].offset;
    if (frames_.depth(at) != kCalled) return LeftOut::kUnusualFrame;
    for (const std::size_t f : all)
      for (const Instruction& i : code_.of(f))
        if (is_jump(i) && (i.target == at || i.target == begin)) return LeftOut::kLoopsToEntry;
    Stub stub;
    stub.what = Stub::What::kEntry;
    stub.from = begin;
    std::uint64_t size = 0;
    for (std::size_t n = first; n < instructions.size() && size < kJumpSize; ++n) {
      const Instruction& i = instructions[n];
      if (size != 0 && code_.is_target(at + size)) break;
      if (code_.has_target(at + size + 1, at + size + i.size)) return LeftOut::kNoRoomAtEntry;
      const bool is_jump_out = is_jump(i) && !is_inside(i.target, all);
      stub.leaves = i.kind == Kind::kReturn || (is_jump_out && i.kind == Kind::kJump);
      if (stub.leaves && frames_.depth(at + size) != kCalled) return LeftOut::kSharedCode;
      if (!stub.leaves && (is_jump_out || !may_move(i))) {
        if (i.kind == Kind::kCall) return redirect(function, at, at + size, i);
        if (size < kShortJumpSize) return LeftOut::kFixedEntry;
        break;
      }
      stub.moved.push_back(i);
      size += i.size;
      if (i.ends_flow) break;
    }
    stub.to = at + size;
    stub.jump.at = at;
    // Where flow ends the stub goes on by itself; what follows may be padding, which is as good as code of the
    // function.
    std::uint64_t room = size;
    if (size < kJumpSize && !stub.moved.empty() && stub.moved.back().ends_flow && is_free(at + size, at + kJumpSize))
      room += code_.padding(at + size, kJumpSize - size);
    if (room < kShortJumpSize || !is_free(at, at + room)) return LeftOut::kNoRoomAtEntry;
    stub.jump.how = room >= kJumpSize ? Jump::How::kDirect : Jump::How::kByPadding;
    take(at, at + room);
    function.stubs.push_back(std::move(stub));
    return LeftOut::kNot;
  }

  /// A call comes before there is room: it goes to what it calls by way of a stub, which passes the entry's sled.
  LeftOut redirect(Function& function, std::uint64_t begin, std::uint64_t at, const Instruction& call) {
    if (!is_free(begin, at + call.size)) return LeftOut::kNoRoomAtEntry;
    Stub stub;
    stub.what = Stub::What::kEntry;
    stub.target = call.target;
    stub.jump.at = at;
    stub.jump.field = call.field;
    stub.jump.how = Jump::How::kRedirect;
    stub.to = at + call.size;
    take(begin, stub.to);
    function.stubs.push_back(std::move(stub));
    return LeftOut::kNot;
  }

  LeftOut add_exits(Function& function, std::size_t f, const std::vector<std::size_t>& all) {
    const auto instructions = code_.of(f);
    for (std::size_t n = 0; n < instructions.size(); ++n) {
      const Instruction& i = instructions[n];
      const std::uint64_t at = address(f, i);
      if (at >= function.stubs[0].jump.at && at < function.stubs[0].to) continue;  // the entry's stub has it
      if (i.kind == Kind::kReturn) {
        if (!add_exit(function, f, n, Stub::What::kReturn)) return LeftOut::kNoRoomAtExit;
      } else if (i.kind == Kind::kJumpAnywhere) {
        const auto leaves = leaves_by(f, n);
        if (!leaves) return LeftOut::kUnknownJump;
        if (*leaves && !add_exit(function, f, n, Stub::What::kTail)) return LeftOut::kNoRoomAtExit;
      } else if (is_jump(i) && !is_inside(i.target, all)) {
        if (frames_.depth(at) != kCalled) return LeftOut::kSharedCode;
        if (!add_jump_out(function, f, n)) return LeftOut::kNoRoomAtExit;
      }
    }
    // Flow that runs over the end comes to another function without a jump.
    const Instruction& last = instructions.back();
    const bool ends = last.ends_flow || last.kind == Kind::kPadding || is_call(last);
    return ends ? LeftOut::kNot : LeftOut::kSharedCode;
  }

  /// Whether the jump to an address in a register or in memory leaves the function; none: not known.
  std::optional<bool> leaves_by(std::size_t f, std::size_t n) const {
    const auto instructions = code_.of(f);
    const std::uint64_t at = address(f, instructions[n]);
    const bool by_table = code_.has_table(f);
    if (frames_.depth(at) != kCalled) return by_table ? std::optional(false) : std::nullopt;
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

  enum class Source : std::uint8_t { kPointer, kTable, kUnknown };

  /// Where the address comes from, as far as the instructions before the jump show it.
  Source source(std::size_t f, std::size_t n) const {
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
    const auto of_memory = [](const ZydisDecodedOperand& o) {
      return o.mem.index == ZYDIS_REGISTER_NONE ? Source::kPointer : Source::kTable;
    };
    if (operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY) return of_memory(operands[0]);
    if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER) return Source::kUnknown;
    ZydisRegister wanted = operands[0].reg.value;
    constexpr std::size_t kFarBack = 24;
    for (std::size_t back = 1; back <= n && back <= kFarBack; ++back) {
      const Instruction& i = instructions[n - back];
      if (i.ends_flow || is_call(i) || !decode(i)) return Source::kUnknown;
      if (in.operand_count_visible == 0 || operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
          (operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0 ||
          ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operands[0].reg.value) != wanted)
        continue;
      if (in.mnemonic == ZYDIS_MNEMONIC_ADD || in.mnemonic == ZYDIS_MNEMONIC_MOVSXD) return Source::kTable;
      if (in.mnemonic != ZYDIS_MNEMONIC_MOV) return Source::kUnknown;
      if (operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY) return of_memory(operands[1]);
      if (operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER) return Source::kUnknown;
      wanted = operands[1].reg.value;
    }
    return Source::kUnknown;
  }

  /// An exit by the instruction itself, with those before it and padding behind it as far as they are needed.
  bool add_exit(Function& function, std::size_t f, std::size_t n, Stub::What what) {
    const auto instructions = code_.of(f);
    const Instruction& last = instructions[n];
    const std::uint64_t last_at = address(f, last);
    const std::uint64_t end = last_at + last.size;
    const std::uint64_t behind = is_free(end, end + kJumpSize) ? code_.padding(end, kJumpSize) : 0;
    std::size_t first = n;
    std::uint64_t at = last_at;
    if (code_.has_target(at + 1, end) || !is_free(at, end)) return false;
    // Instructions before it, until there is room; the first may be a place that something goes to.
    while (end + behind - at < kJumpSize && first != 0 && !code_.is_target(at)) {
      const Instruction& before = instructions[first - 1];
      const std::uint64_t before_at = address(f, before);
      if (!may_move(before) || is_jump(before) || code_.has_target(before_at + 1, at) || !is_free(before_at, at)) break;
      --first;
      at = before_at;
    }
    const std::uint64_t room = end + behind - at;
    if (room < kShortJumpSize) return false;
    Stub stub;
    stub.what = what;
    stub.from = frame(f).code.begin;
    stub.moved.assign(instructions.begin() + static_cast<std::ptrdiff_t>(first),
                      instructions.begin() + static_cast<std::ptrdiff_t>(n) + 1);
    stub.jump.at = at;
    stub.jump.how = room >= kJumpSize ? Jump::How::kDirect : Jump::How::kByPadding;
    take(at, std::max(end, at + std::min(room, room >= kJumpSize ? kJumpSize : kShortJumpSize)));
    function.stubs.push_back(std::move(stub));
    return true;
  }

  /// An exit by a jump to a known address.
  bool add_jump_out(Function& function, std::size_t f, std::size_t n) {
    const Instruction& i = code_.of(f)[n];
    constexpr std::uint8_t kWide = 4;
    if (i.kind == Kind::kShortJumpIf) return false;
    const bool is_wide = i.size - i.field == kWide;
    if (!is_wide && i.kind == Kind::kJump) return add_exit(function, f, n, Stub::What::kTail);
    Stub stub;
    stub.what = Stub::What::kTail;
    stub.target = i.target;
    stub.jump.at = address(f, i);
    stub.jump.field = i.field;
    stub.jump.how = is_wide ? Jump::How::kRedirect : Jump::How::kByPadding;
    stub.jump.is_conditional = i.kind == Kind::kJumpIf;
    if (!is_free(stub.jump.at, stub.jump.at + i.size)) return false;
    take(stub.jump.at, stub.jump.at + i.size);
    function.stubs.push_back(std::move(stub));
    return true;
  }

  Detour look_at_detour(std::uint64_t at) {
    Detour detour;
    detour.function = at;
    const auto f = frames_.find(at);
    if (!f || frame(*f).code.begin != at) {
      detour.left_out = LeftOut::kNoFrame;
      return detour;
    }
    const std::vector<std::size_t> all = function_of(*f);
    Function function;
    function.code = frame(*f).code;
    if (parent_[*f] != *f || !begins_called_[*f] || is_linkage_[*f] || code_.is_start(at))
      detour.left_out = LeftOut::kUnusualFrame;
    else if (const LeftOut why = unsound(all); why != LeftOut::kNot)
      detour.left_out = why;
    else if (is_shared_[*f])
      detour.left_out = LeftOut::kSharedCode;
    else
      detour.left_out = add_entry_at(function, *f, all, first_of(*f));
    if (detour.left_out != LeftOut::kNot) return detour;
    detour.stub = std::move(function.stubs.front());
    // A call's way leads by a stub that has its return address on the stack already.
    if (detour.stub.jump.how == Jump::How::kRedirect) detour.left_out = LeftOut::kFixedEntry;
    detour.stub.what = Stub::What::kDetour;
    return detour;
  }

  Probe look_at_probe(std::uint64_t at) {
    Probe probe;
    probe.address = at;
    probe.left_out = place(probe);
    return probe;
  }

  LeftOut place(Probe& probe) {
    const auto f = frames_.find(probe.address);
    if (!f) return LeftOut::kNoFrame;
    const std::vector<std::size_t> all = function_of(*f);
    if (const LeftOut why = unsound(all); why != LeftOut::kNot) return why;
    for (const std::size_t part : all)
      for (std::size_t n = 0; n < code_.of(part).size(); ++n)
        if (code_.of(part)[n].kind == Kind::kJumpAnywhere && !leaves_by(part, n)) return LeftOut::kUnknownJump;
    const auto instructions = code_.of(*f);
    const auto nop = std::find_if(instructions.begin(), instructions.end(),
                                  [&](const Instruction& i) { return address(*f, i) == probe.address; });
    if (nop == instructions.end() || nop->kind != Kind::kPadding || nop->size != 1) return LeftOut::kNoProbe;
    return add_window(probe.stub, *f, static_cast<std::size_t>(nop - instructions.begin())) ? LeftOut::kNot
                                                                                            : LeftOut::kNoRoomAtProbe;
  }

  /// Whole instructions from number `first` on that a jump may stand in place of.
  struct Window {
    std::size_t first = 0;
    std::size_t end = 0;
    std::uint64_t at = 0;
    std::uint64_t size = 0;     // bytes of the instructions
    std::uint64_t padding = 0;  // and behind them
    std::uint64_t room() const { return size + padding; }
  };

  /// From `first` on over number `nop`, and further until there is room for a long jump.
  Window window(std::size_t f, std::size_t first, std::size_t nop) const {
    const auto instructions = code_.of(f);
    Window w{first, first, address(f, instructions[first])};
    for (; w.end < instructions.size() && (w.end <= nop || w.size < kJumpSize); ++w.end) {
      const Instruction& i = instructions[w.end];
      const std::uint64_t at = w.at + w.size;
      const bool may_be_last = i.kind == Kind::kReturn && w.end > nop;
      if ((!may_move(i) && !may_be_last) || (w.size != 0 && code_.is_target(at)) ||
          code_.has_target(at + 1, at + i.size) || !is_free(at, at + i.size))
        break;
      w.size += i.size;
      if (!i.ends_flow) continue;
      ++w.end;
      if (w.size < kJumpSize && is_free(w.at + w.size, w.at + kJumpSize))
        w.padding = code_.padding(w.at + w.size, kJumpSize - w.size);
      break;
    }
    return w;
  }

  /// A jump over a probe's NOP, with instructions before it where those behind it do not make room enough.
  bool add_window(Stub& stub, std::size_t f, std::size_t nop) {
    constexpr std::size_t kFarBack = 5;  // instructions
    const auto instructions = code_.of(f);
    Window best;
    for (std::size_t first = nop; best.room() < kJumpSize && nop - first <= kFarBack; --first) {
      const Window w = window(f, first, nop);
      if (w.end > nop && w.room() > best.room()) best = w;
      // Flow comes to the window's first instruction alone, and goes through all up to the NOP.
      if (first == 0 || code_.is_target(w.at)) break;
      const Instruction& before = instructions[first - 1];
      if (is_jump(before) || before.ends_flow || is_call(before)) break;
    }
    if (best.room() < kShortJumpSize) return false;
    stub.what = Stub::What::kProbe;
    stub.from = frame(f).code.begin;
    stub.moved.assign(instructions.begin() + static_cast<std::ptrdiff_t>(best.first),
                      instructions.begin() + static_cast<std::ptrdiff_t>(best.end));
    stub.before = nop - best.first;
    stub.to = best.at + best.size;
    stub.jump.at = best.at;
    stub.jump.how = best.room() >= kJumpSize ? Jump::How::kDirect : Jump::How::kByPadding;
    take(best.at, best.at + best.room());
    return true;
  }

  // What patches cover: no two may meet.
  void take(std::uint64_t begin, std::uint64_t end) { taken_.add(begin, end); }
  bool is_free(std::uint64_t begin, std::uint64_t end) const { return !taken_.has_one(begin, end); }

  void settle_short_jumps(Places& places);
  bool settle(Stub& stub);
  std::optional<std::uint64_t> find_padding(std::uint64_t at);
  void gather_padding();

  const Frames& frames_;
  const Code& code_;
  const PlaceOptions& options_;
  std::vector<std::size_t> parent_;
  std::vector<bool> begins_called_;
  std::vector<bool> is_linkage_;
  std::map<std::size_t, std::vector<std::size_t>> groups_;  // owner: its parts
  std::map<std::size_t, bool> is_shared_;
  AddressSet taken_;
  std::set<std::uint64_t> has_detour_;
  std::map<std::uint64_t, std::uint64_t> padding_;  // begin: end
};

/// Padding that nothing executes: behind the end of flow, within frames and between them.
void Finder::gather_padding() {
  constexpr std::size_t kMost = 64;
  const auto see = [this](std::uint64_t at) {
    if (const std::size_t size = code_.padding(at, kMost); size >= kJumpSize) padding_[at] = at + size;
  };
  for (std::size_t f = 0; f < frames_.all().size(); ++f) {
    const auto instructions = code_.of(f);
    for (const Instruction& i : instructions)
      if (i.ends_flow) see(address(f, i) + i.size);
    const std::uint64_t end = frame(f).code.end;
    const bool ends =
        !instructions.empty() && (instructions.back().ends_flow || instructions.back().kind == Kind::kPadding);
    if (ends && !frames_.find(end)) see(end);
  }
}

/// Room for a jump of 5 bytes that a short jump at `at` reaches.
std::optional<std::uint64_t> Finder::find_padding(std::uint64_t at) {
  constexpr std::uint64_t kBack = 126;
  constexpr std::uint64_t kForth = 129;
  constexpr std::uint64_t kLongestRun = 64;
  for (auto run = padding_.lower_bound(at - kBack - kLongestRun); run != padding_.end() && run->first <= at + kForth;
       ++run)
    for (std::uint64_t p = std::max(run->first, at - kBack); p + kJumpSize <= run->second && p <= at + kForth; ++p)
      if (is_free(p, p + kJumpSize)) return p;
  return std::nullopt;
}

/// False: a short jump finds no padding.
bool Finder::settle(Stub& stub) {
  if (stub.jump.how != Jump::How::kByPadding) return true;
  const auto padding = find_padding(stub.jump.at);
  if (!padding) return false;
  stub.jump.padding = *padding;
  take(*padding, *padding + kJumpSize);
  return true;
}

void Finder::settle_short_jumps(Places& places) {
  gather_padding();
  for (Probe& probe : places.probes)
    if (probe.left_out == LeftOut::kNot && !settle(probe.stub)) probe.left_out = LeftOut::kNoRoomAtProbe;
  for (Function& function : places.functions) {
    for (Stub& stub : function.stubs) {
      if (settle(stub)) continue;
      function.left_out = stub.what == Stub::What::kEntry ? LeftOut::kNoRoomAtEntry : LeftOut::kNoRoomAtExit;
      break;
    }
    if (function.left_out != LeftOut::kNot) function.stubs.clear();
  }
}

}  // namespace

std::string_view describe(LeftOut why) {
  constexpr std::array<std::string_view, kLeftOutCount> kTexts = {
      "patched",
      "too small to be worth it (--min-instructions)",
      "no room for a jump where it begins",
      "no room for a jump where it returns",
      "its first instructions must stay where they are",
      "it jumps back to its first instruction",
      "it has bytes that are no instructions",
      "it jumps to places that are not known",
      "it shares code with another function",
      "its frame does not begin as that of a called function",
      "its table of exception handlers cannot be read",
      "it is not in the table of frames (.eh_frame)",
      "others were named",
      "no room for a jump at a probe",
      "no NOP stands where the file has a probe",
  };
  return kTexts[static_cast<std::size_t>(why)];
}

Places find_places(const Frames& frames, const Code& code, const PlaceOptions& options) {
  return Finder(frames, code, options).find();
}

}  // namespace karst::patch
