// SPDX-License-Identifier: MIT
// Where the functions of a module can be patched so that each entry and each exit passes a sled, and which functions
// are left alone, with the reason. Nothing is written here.
//
// A patch is a jump of 5 bytes over whole instructions, to a stub (stubs.h) that executes those, passes the sled, and
// goes on. An instruction that may fault stays in its place; a function that begins with some is patched behind them.
// Return addresses on the stack stay what they are, so whatever walks stacks sees what it
// saw before. The jump must cover no place that something may go to but its first byte. Where there is room for 2 bytes
// alone, a short jump leads to padding near by (room.h), or to where a stub's instructions were (spare.h), and a jump
// there to the stub.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/patch_table.h"
#include "patch/code.h"
#include "patch/frames.h"
#include "patch/sleds.h"

namespace karst::patch {

enum class LeftOut : std::uint8_t {
  kNot,              ///< it can be patched
  kSmall,            ///< fewer instructions than were asked for, and no loop
  kNoRoomAtEntry,    ///< something goes to one of its first bytes, or it is too short
  kNoRoomAtExit,     ///< the same where it returns
  kFixedEntry,       ///< its first instructions must stay where they are (a call, a short loop)
  kLoopsToEntry,     ///< it goes back to its first instruction: that is no call
  kUnknownCode,      ///< something in it is no instruction
  kUnknownJump,      ///< it jumps to places that are not known
  kSharedCode,       ///< it shares code with another function, or is entered in the middle
  kUnusualFrame,     ///< its frame does not begin as that of a called function
  kUnknownCleanups,  ///< its table of exception handlers cannot be read
  kNoFrame,          ///< a symbol names it, and no entry of the table of frames
  kNotNamed,         ///< others were named
  kNoRoomAtProbe,    ///< a probe's NOP has no instructions around it that a jump can stand in place of
  kNoProbe,          ///< no NOP stands where the file says that a probe is
  kFlags,            ///< it is given arithmetic flags, gives some back, or jumps to what is given some
  kHasSleds,         ///< it was built for tracing
  kUntraced,         ///< it was built beside such ones, and its source keeps it out
  kInterprets        ///< it calls what an interpreter executes, whose functions are recorded themselves
};
inline constexpr std::size_t kLeftOutCount = 19;
/// Of a module that was built for tracing in part: not of the part that was not.
constexpr bool is_of_built(LeftOut why) { return why == LeftOut::kHasSleds || why == LeftOut::kUntraced; }
/// For people: a phrase behind "N functions: ".
std::string_view describe(LeftOut why);

/// What is written over code, to lead to a stub.
struct Jump {
  enum class How : std::uint8_t {
    kDirect,    ///< a jump of 5 bytes over `at`
    kRedirect,  ///< the jump at `at` stays, with another distance, which stands `field` bytes behind `at`
    kByPadding  ///< a short jump at `at` to `padding` in the same page, where the jump of 5 bytes stands
  };
  How how = How::kDirect;
  std::uint8_t field = 0;
  bool is_conditional = false;  ///< of kByPadding: `at` has a short conditional jump, which keeps its condition
  std::uint64_t at = 0;
  std::uint64_t padding = 0;
  std::uint8_t guard = 0;  ///< of kByPadding: bytes up to `padding` that are executed before the jumps are there

  /// Bytes of the short jump at `at`.
  std::uint64_t short_size() const { return is_conditional ? field + 1U : kShortJumpSize; }
};

/// A stub: moves [from, to), which is replaced by the jump, and passes one sled.
struct Stub {
  enum class What : std::uint8_t {
    kEntry,   ///< the sled, the instructions, back to `to`; if `leaves`, a second sled before the last: an exit.
              ///< Of a redirected call: the sled, and a jump to `target`
    kReturn,  ///< the instructions up to the last, the sled, the last: a return, or a jump to a thunk that returns
    kTail,    ///< the same; the last is a jump out of the function. With `is_empty` only a jump to `target`
    kDetour,  ///< the instructions, back to `to`: of an entry whose calls may go elsewhere
    kMoved,   ///< the instructions, back to `to`, and no sled: where they were is room for jumps
    kProbe    ///< `before` instructions, the probe, the others; then back to `to`, if the last does not end flow.
              ///< Of a redirected call: the probe as before the call, and a jump to `target`
  };
  What what = What::kEntry;
  bool leaves = false;
  bool returns = false;   ///< of one that leaves: by a return
  bool in_place = false;  ///< of a tail call: it may be made in place (tail_calls.h)
  Jump jump;
  std::vector<Instruction> moved;  ///< the last of an exit among them, unless it is redirected
  std::uint64_t from = 0;          ///< address of the frame that their offsets count from
  std::uint64_t to = 0;            ///< kEntry, kMoved: where it goes on
  std::uint64_t target = 0;        ///< of a redirected jump: where that went
  std::size_t before = 0;          ///< kProbe
  std::uint64_t spare = 0;         ///< of kDirect: where further jumps may stand (spare.h); 0: behind its own
};

struct Function {
  Range code;                        ///< without parts elsewhere
  std::vector<std::uint64_t> parts;  ///< where its parts in other sections begin
  std::uint32_t instructions = 0;    ///< of all parts; NOPs and endbr64 are not counted
  bool loops = false;
  bool is_late = false;  ///< flags are live where its entry is recorded, and its arguments may not be there any more
  LeftOut left_out = LeftOut::kNot;
  std::vector<Stub> stubs;  ///< the entry's first; empty if it is left out
};

/// Of code that was not built for tracing: smaller functions tell little and cost most.
inline constexpr std::uint32_t kPlainMinInstructions = 12;

/// The place of a probe (sdt.h), or another that a hook is to see (landings.h).
struct Probe {
  format::PatchProbeKind kind = format::PatchProbeKind::kNote;
  std::uint64_t address = 0;  ///< of its NOP, or of the instruction before which the hook is called
  LeftOut left_out = LeftOut::kNot;
  Stub stub;  ///< of one that is not left out
};

/// The entry of a function before which a library of ours may stand.
struct Detour {
  std::uint64_t function = 0;
  LeftOut left_out = LeftOut::kNot;
  Stub stub;  ///< of one that is not left out
};

struct PlaceOptions {
  std::uint32_t min_instructions = 0;  ///< functions with fewer, and no loop, are left out
  /// Where the functions begin that are wanted, whatever their size, in order; none: all are.
  std::optional<std::vector<std::uint64_t>> named{};
  /// Where functions begin that call what an interpreter executes, in order. They are left out unless they are named.
  std::vector<std::uint64_t> interpreting{};
  /// Where functions begin whose arguments are needed, in order: none is late, nor too small.
  std::vector<std::uint64_t> with_arguments{};
  /// Where the probes are that are wanted. They go before functions that need the same bytes.
  std::vector<std::uint64_t> probes{};
  /// Where the functions begin that are to have detours. They go before probes, and are not patched as functions then.
  std::vector<std::uint64_t> detours{};
  /// Functions that have some are not patched, nor are those that are kept out.
  Sleds sleds{};
};

struct Places {
  std::vector<Function> functions;  ///< in order of address
  std::vector<Probe> probes;        ///< as they were wanted
  std::vector<Detour> detours;      ///< as they were wanted
  std::vector<Probe> landings;      ///< those that have room, where functions are wanted: both ends of each jump
};
Places find_places(const Frames& frames, const Code& code, const PlaceOptions& options);

}  // namespace karst::patch
