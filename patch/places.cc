// SPDX-License-Identifier: MIT
// Each function (joined.h) gets its stubs at its entry and exits, or the reason why not. Detours go first, then probes
// (probe_places.h); short jumps come last, when it is known which padding is left (room.h).
#include "patch/places.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "patch/flow.h"
#include "patch/joined.h"
#include "patch/landings.h"
#include "patch/leaving.h"
#include "patch/probe_places.h"
#include "patch/room.h"
#include "sandbox/sandbox_helper.h"

namespace karst::patch {
namespace {

/// A jump there can be changed by one store, as the processors promise it (arch::can_change_live).
bool is_in_a_quadword(std::uint64_t at) {
  constexpr std::uint64_t kQuadword = 8;
  return at / kQuadword == (at + kJumpSize - 1) / kQuadword;
}

class Finder {
 public:
  Finder(const Frames& frames, const Code& code, const PlaceOptions& options)
      : frames_(frames),
        code_(code),
        options_(options),
        flow_(frames, code),
        joined_(frames, code, flow_),
        leaving_(frames, code, joined_, flow_),
        room_(frames, code, flow_) {}

  Places find() {
    Places found;
    for (const Range& range : options_.sleds.code) room_.take(range.begin, range.end);
    for (const std::uint64_t address : options_.detours) {
      has_detour_.insert(address);
      found.detours.push_back(look_at_detour(address));
    }
    ProbePlaces probes(frames_, code_, flow_, joined_, leaving_, room_);
    for (const std::uint64_t address : options_.probes) found.probes.push_back(probes.look_at(address));
    if (!options_.named || !options_.named->empty())
      for (const Landing& landing : landings_in(frames_, code_, joined_)) add_landing(probes, landing, found.landings);
    auto& functions = found.functions;
    const auto& all = joined_.functions();
    std::vector<Joined::Looked> looked(all.size());
    const auto look_from = [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n)
        if (is_wanted(frame(all[n].owner).code.begin) && is_called(all[n])) looked[n] = joined_.look(all[n].all());
    };
    sandbox::side_by_side([&] { look_from(0, all.size() / 2); }, [&] { look_from(all.size() / 2, all.size()); });
    functions.reserve(all.size());
    const auto place_all = [&] {
      for (std::size_t n = 0; n < all.size(); ++n) functions.push_back(place(all[n], looked[n]));
    };
    sandbox::side_by_side(place_all, [&] { room_.gather_padding(); });
    room_.settle_short_jumps(found);
    std::sort(functions.begin(), functions.end(),
              [](const Function& a, const Function& b) { return a.code.begin < b.code.begin; });
    return found;
  }

 private:
  const Frame& frame(std::size_t f) const { return flow_.frame(f); }
  std::uint64_t address(std::size_t f, const Instruction& i) const { return flow_.address(f, i); }

  static bool is_among(const std::vector<std::uint64_t>& all, std::uint64_t begin) {
    return std::binary_search(all.begin(), all.end(), begin);
  }
  bool is_wanted(std::uint64_t begin) const { return !options_.named || is_among(*options_.named, begin); }
  bool needs_arguments(std::uint64_t begin) const { return is_among(options_.with_arguments, begin); }

  /// All of it or nothing: a jump to a place that nobody had set would end all calls.
  void add_landing(ProbePlaces& places, const Landing& landing, std::vector<Probe>& into) const {
    std::vector<Probe> all = {places.look_before(landing.behind, format::PatchProbeKind::kLands)};
    for (const Alike& set_by : landing.set_by)
      all.push_back(places.look_before(set_by, format::PatchProbeKind::kSetsPlace));
    if (std::all_of(all.begin(), all.end(), [](const Probe& p) { return p.left_out == LeftOut::kNot; }))
      std::move(all.begin(), all.end(), std::back_inserter(into));
  }

  /// As far as it can be seen without its instructions.
  bool is_called(const Joined::Function& f) const {
    return joined_.begins_called(f.owner) && !joined_.is_linkage(f.owner) && !code_.is_start(frame(f.owner).code.begin);
  }

  LeftOut built_for_tracing(const Joined::Function& joined) const {
    const auto is_in = [this](std::size_t f, const auto& places, auto address_of) {
      const auto first = std::lower_bound(places.begin(), places.end(), frame(f).code.begin,
                                          [&](const auto& p, std::uint64_t at) { return address_of(p) < at; });
      return first != places.end() && address_of(*first) < frame(f).code.end;
    };
    for (const std::size_t f : joined.all()) {
      if (is_in(f, options_.sleds.code, [](const Range& r) { return r.begin; })) return LeftOut::kHasSleds;
      if (is_in(f, options_.sleds.untraced, [](std::uint64_t at) { return at; })) return LeftOut::kUntraced;
    }
    return LeftOut::kNot;
  }

  Function place(const Joined::Function& joined, const Joined::Looked& looked) {
    Function function;
    function.code = frame(joined.owner).code;
    if (has_detour_.contains(function.code.begin)) {
      function.left_out = LeftOut::kNoRoomAtEntry;
      return function;
    }
    if (const LeftOut why = built_for_tracing(joined); why != LeftOut::kNot) {
      function.left_out = why;
      return function;
    }
    if (!is_wanted(function.code.begin)) {
      function.left_out = LeftOut::kNotNamed;
      return function;
    }
    if (!options_.named && is_among(options_.interpreting, function.code.begin)) {
      function.left_out = LeftOut::kInterprets;
      return function;
    }
    for (const std::size_t part : joined.parts) function.parts.push_back(frame(part).code.begin);
    function.left_out = is_called(joined) ? reason(function, joined, looked) : LeftOut::kUnusualFrame;
    if (function.left_out != LeftOut::kNot) function.stubs.clear();
    return function;
  }

  LeftOut reason(Function& function, const Joined::Function& joined, const Joined::Looked& looked) {
    if (looked.unsound != LeftOut::kNot) return looked.unsound;
    if (joined.is_shared) return LeftOut::kSharedCode;
    if (has_flags(function.code.begin, joined, looked)) return LeftOut::kFlags;
    function.instructions = looked.instructions;
    function.loops = looked.loops;
    const bool small = !options_.named && function.instructions < options_.min_instructions && !function.loops;
    if (small && !needs_arguments(function.code.begin)) return LeftOut::kSmall;
    const Whole whole{joined.owner, joined.all(), looked.turns};
    if (const LeftOut why = add_entry(function, whole); why != LeftOut::kNot) return why;
    return add_exits(function, whole);
  }

  /// A function's frames, and its jumps and returns.
  struct Whole {
    std::size_t owner;
    std::vector<std::size_t> all;
    const std::vector<Joined::Looked::Turn>& turns;
  };

  bool has_flags(std::uint64_t begin, const Joined::Function& joined, const Joined::Looked& looked) const {
    if (code_.takes_flags(begin)) return true;
    const std::vector<std::size_t> all = joined.all();
    return std::any_of(looked.turns.begin(), looked.turns.end(), [&](const Joined::Looked::Turn& turn) {
      const Instruction& i = code_.of(all[turn.part])[turn.number];
      const bool is_out = is_jump(i) && !joined_.is_inside(i.target, all);
      // What never returns has others' flags behind its calls.
      return ((i.kind == Kind::kReturn || is_out) && code_.returns_flags(begin)) ||
             (is_out && i.kind == Kind::kJump && code_.takes_flags(i.target));
    });
  }

  LeftOut add_entry(Function& function, const Whole& whole) {
    const LeftOut why = add_entry_at(function, whole, flow_.first_of(whole.owner));
    if (why != LeftOut::kFixedEntry && why != LeftOut::kNoRoomAtEntry) return why;
    if (add_later_entry(function, whole, Flow::BeforeEntry::kAsCalled)) return LeftOut::kNot;
    if (needs_arguments(function.code.begin) || !add_later_entry(function, whole, Flow::BeforeEntry::kChanged))
      return why;
    function.is_late = true;
    return LeftOut::kNot;
  }

  /// Many functions begin by reading their first argument, which may fault: that stays where it is, and the call is
  /// recorded behind it.
  bool add_later_entry(Function& function, const Whole& whole, Flow::BeforeEntry most) {
    const std::size_t owner = whole.owner;
    const auto instructions = code_.of(owner);
    std::size_t first = flow_.first_of(owner);
    for (std::size_t n = 0; n < kMostBeforeEntry && first + 1 < instructions.size(); ++n, ++first) {
      const Flow::BeforeEntry before = flow_.before_entry(owner, first);
      if (before == Flow::BeforeEntry::kNever || before > most ||
          code_.is_target(address(owner, instructions[first + 1])))
        return false;
      if (add_entry_at(function, whole, first + 1) == LeftOut::kNot) return true;
    }
    return false;
  }

  static constexpr std::size_t kMostBeforeEntry = 4;  // instructions

  LeftOut add_entry_at(Function& function, const Whole& whole, std::size_t first) {
    const std::size_t owner = whole.owner;
    const auto instructions = code_.of(owner);
    const std::uint64_t begin = function.code.begin;
    const std::uint64_t at = begin + instructions[first].offset;
    if ((at == begin ? frames_.depth_at_begin(owner) : frames_.depth(at)) != kCalledDepth)
      return LeftOut::kUnusualFrame;
    for (const auto& turn : whole.turns) {
      const Instruction& i = code_.of(whole.all[turn.part])[turn.number];
      if (is_jump(i) && (i.target == at || i.target == begin)) return LeftOut::kLoopsToEntry;
    }
    Stub stub;
    stub.what = Stub::What::kEntry;
    stub.from = begin;
    std::uint64_t size = 0;
    for (std::size_t n = first; n < instructions.size() && size < kJumpSize; ++n) {
      const Instruction& i = instructions[n];
      if (size != 0 && code_.is_target(at + size)) break;
      if (code_.has_target(at + size + 1, at + size + i.size)) return LeftOut::kNoRoomAtEntry;
      const bool is_jump_out = is_jump(i) && !joined_.is_inside(i.target, whole.all);
      if (is_jump_out && code_.thunk(i.target).kind == Code::Thunk::Kind::kJump) return LeftOut::kFixedEntry;
      stub.leaves = i.kind == Kind::kReturn || (is_jump_out && i.kind == Kind::kJump);
      stub.returns = stub.leaves && returns(i);
      if (stub.leaves && frames_.depth(at + size) != kCalledDepth) return LeftOut::kSharedCode;
      if (!stub.leaves && (is_jump_out || !flow_.may_move(owner, i))) {
        const bool is_passed = std::none_of(stub.moved.begin(), stub.moved.end(), is_jump);
        if (i.kind == Kind::kCall && is_passed && !code_.is_returning_call(at + size))
          return redirect(function, at, at + size, i);
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
    if (size < kJumpSize && !stub.moved.empty() && stub.moved.back().ends_flow &&
        room_.is_free(at + size, at + kJumpSize))
      room += code_.padding(at + size, kJumpSize - size);
    if (room < kShortJumpSize || !room_.is_free(at, at + room)) return LeftOut::kNoRoomAtEntry;
    stub.jump.how = room >= kJumpSize ? Jump::How::kDirect : Jump::How::kByPadding;
    room_.take(at, at + room);
    function.stubs.push_back(std::move(stub));
    return LeftOut::kNot;
  }

  /// A call comes before there is room: it goes to what it calls by way of a stub, which passes the entry's sled.
  LeftOut redirect(Function& function, std::uint64_t begin, std::uint64_t at, const Instruction& call) {
    if (!room_.is_free(begin, at + call.size)) return LeftOut::kNoRoomAtEntry;
    Stub stub;
    stub.what = Stub::What::kEntry;
    stub.target = call.target;
    stub.jump.at = at;
    stub.jump.field = call.field;
    stub.jump.how = Jump::How::kRedirect;
    stub.to = at + call.size;
    room_.take(begin, stub.to);
    function.stubs.push_back(std::move(stub));
    return LeftOut::kNot;
  }

  LeftOut add_exits(Function& function, const Whole& whole) {
    auto turn = whole.turns.begin();
    for (std::size_t part = 0; part < whole.all.size(); ++part) {
      for (; turn != whole.turns.end() && turn->part == part; ++turn)
        if (const LeftOut why = add_exit_at(function, whole, part, turn->number); why != LeftOut::kNot) return why;
      // Flow that runs over the end comes to another function without a jump.
      const Instruction& last = code_.of(whole.all[part]).back();
      if (!last.ends_flow && last.kind != Kind::kPadding && !is_call(last)) return LeftOut::kSharedCode;
    }
    return LeftOut::kNot;
  }

  /// If the jump or return leaves the function, and the entry's stub does not have it.
  LeftOut add_exit_at(Function& function, const Whole& whole, std::size_t part, std::size_t n) {
    const std::size_t f = whole.all[part];
    const Instruction& i = code_.of(f)[n];
    const std::uint64_t at = address(f, i);
    if (at >= function.stubs[0].jump.at && at < function.stubs[0].to) return LeftOut::kNot;
    if (i.kind == Kind::kReturn)
      return add_exit(function, f, n, Stub::What::kReturn) ? LeftOut::kNot : LeftOut::kNoRoomAtExit;
    if (i.kind == Kind::kJumpAnywhere || leaving_.is_by_thunk(i)) {
      const auto leaves = leaving_.leaves(whole.all, f, n);
      if (!leaves) return LeftOut::kUnknownJump;
      if (!*leaves) return LeftOut::kNot;
      const bool is_added = is_jump(i) ? add_jump_out(function, f, n) : add_exit(function, f, n, Stub::What::kTail);
      return is_added ? LeftOut::kNot : LeftOut::kNoRoomAtExit;
    }
    if (joined_.is_inside(i.target, whole.all)) return LeftOut::kNot;
    if (frames_.depth(at) != kCalledDepth) return LeftOut::kSharedCode;
    return add_jump_out(function, f, n) ? LeftOut::kNot : LeftOut::kNoRoomAtExit;
  }

  /// By itself, or by a thunk (-mfunction-return).
  bool returns(const Instruction& i) const {
    return i.kind == Kind::kReturn || (is_jump(i) && code_.thunk(i.target).kind == Code::Thunk::Kind::kReturn);
  }

  /// An exit by the instruction itself, with those before it and padding behind it as far as they are needed.
  bool add_exit(Function& function, std::size_t f, std::size_t n, Stub::What what) {
    const auto instructions = code_.of(f);
    const Instruction& last = instructions[n];
    const std::uint64_t last_at = address(f, last);
    const std::uint64_t end = last_at + last.size;
    const std::uint64_t behind = room_.is_free(end, end + kJumpSize) ? code_.padding(end, kJumpSize) : 0;
    std::size_t first = n;
    std::uint64_t at = last_at;
    if (code_.has_target(at + 1, end) || !room_.is_free(at, end)) return false;
    // Instructions before it, until there is room; the first may be a place that something goes to.
    const auto take_one = [&] {
      if (first == 0 || code_.is_target(at)) return false;
      const Instruction& before = instructions[first - 1];
      const std::uint64_t before_at = address(f, before);
      if (!flow_.may_move(f, before) || is_jump(before) || code_.has_target(before_at + 1, at) ||
          !room_.is_free(before_at, at))
        return false;
      --first;
      at = before_at;
      return true;
    };
    while (end + behind - at < kJumpSize && take_one()) {
    }
    // And a few more, where that makes a jump that can be taken back while threads run.
    constexpr std::uint64_t kMostMore = 12;
    const std::size_t enough = first;
    const std::uint64_t enough_at = at;
    while (end + behind - at >= kJumpSize && !is_in_a_quadword(at) && enough_at - at < kMostMore && take_one()) {
    }
    if (!is_in_a_quadword(at)) {
      first = enough;
      at = enough_at;
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
    room_.take(at, std::max(end, at + std::min(room, room >= kJumpSize ? kJumpSize : kShortJumpSize)));
    function.stubs.push_back(std::move(stub));
    return true;
  }

  /// An exit by a jump to a known address.
  bool add_jump_out(Function& function, std::size_t f, std::size_t n) {
    const Instruction& i = code_.of(f)[n];
    constexpr std::uint8_t kWide = 4;
    if (i.kind == Kind::kShortJumpIf) return false;
    const bool is_wide = i.size - i.field == kWide;
    const auto what = returns(i) ? Stub::What::kReturn : Stub::What::kTail;
    if (!is_wide && i.kind == Kind::kJump) return add_exit(function, f, n, what);
    Stub stub;
    stub.what = what;
    stub.target = i.target;
    stub.jump.at = address(f, i);
    stub.jump.field = i.field;
    stub.jump.how = is_wide ? Jump::How::kRedirect : Jump::How::kByPadding;
    stub.jump.is_conditional = i.kind == Kind::kJumpIf;
    if (!room_.is_free(stub.jump.at, stub.jump.at + i.size)) return false;
    room_.take(stub.jump.at, stub.jump.at + i.size);
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
    const Joined::Function& joined = joined_.function_of(*f);
    const std::vector<std::size_t> all = joined.all();
    const Joined::Looked looked = joined_.look(all);
    Function function;
    function.code = frame(*f).code;
    if (joined.owner != *f || !is_called(joined))
      detour.left_out = LeftOut::kUnusualFrame;
    else if (looked.unsound != LeftOut::kNot)
      detour.left_out = looked.unsound;
    else if (joined.is_shared)
      detour.left_out = LeftOut::kSharedCode;
    else
      detour.left_out = add_entry_at(function, {*f, all, looked.turns}, flow_.first_of(*f));
    if (detour.left_out != LeftOut::kNot) return detour;
    detour.stub = std::move(function.stubs.front());
    // A call's way leads by a stub that has its return address on the stack already.
    if (detour.stub.jump.how == Jump::How::kRedirect) detour.left_out = LeftOut::kFixedEntry;
    detour.stub.what = Stub::What::kDetour;
    return detour;
  }

  const Frames& frames_;
  const Code& code_;
  const PlaceOptions& options_;
  const Flow flow_;
  const Joined joined_;
  Leaving leaving_;
  Room room_;
  std::set<std::uint64_t> has_detour_;
};

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
      "flags are its arguments or its result",
      "it was built for tracing",
      "its source keeps it out of tracing",
      "it calls functions of Python, which are recorded themselves",
  };
  return kTexts[static_cast<std::size_t>(why)];
}

Places find_places(const Frames& frames, const Code& code, const PlaceOptions& options) {
  return Finder(frames, code, options).find();
}

}  // namespace karst::patch
