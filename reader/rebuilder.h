// SPDX-License-Identifier: MIT
// Rebuilds the calls of one thread from its events.
//
// A thread's kept history is a list of segments, each without a gap in the block sequence; each is rebuilt alone,
// for a call's two ends can only meet within one:
//
//   kept blocks      [ 7 8 9 ]       [ 12 13 ]
//   calls        ...==          ==............       (open begin)  (open end)
//                    ==    ==       ==    ==
//
// What events mean, walk/walker.h says; this makes rows of it:
// - An enter is a row. A call whose enter lies before the segment starts at the segment's first event, marked open, and
//   becomes the parent of all rows so far that had none.
// - Calls whose exit was not seen are marked open, as are those of a stack that is left; these go on as new rows.
// - Switches (switches.h): events of blind functions are ignored. A call that is open when its function is blinded is
//   cut: it keeps its place until the calls within it have ended, as it lasts at least as long, and its own exit counts
//   no more.
// - A call that is shorter than the process's least duration, and has nothing in it, is left out: the process could not
//   do so itself where a block ended between enter and exit, or a signal handler came.
// - Times do not run backwards: where events' do, rows' are held (held_times.h).
// - What is open when the segment ends is marked open, its last sure moment is the last event; after the last segment
//   the end of the thread or of its process, if it has come.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/event.h"
#include "reader/model.h"
#include "reader/open_state.h"
#include "reader/partial.h"
#include "reader/pieces.h"
#include "reader/trace.h"
#include "walk/growing_memory.h"
#include "walk/walker.h"

namespace karst::reader {

class Rebuilder : private walk::Walker<Rebuilder, walk::GrowingMemory<>> {
 public:
  /// `rows`: the enters of the thread, all of them. `used`: see rebuild_calls().
  Rebuilder(const Process& process, EventReader read, std::size_t rows, Calls used = {});
  ~Rebuilder();
  Rebuilder(const Rebuilder&) = delete;
  Rebuilder& operator=(const Rebuilder&) = delete;

  /// `inherited`: so many first enters are those of calls that began in another process.
  /// `inherited_marks`: what they are marked with.
  void segment(std::span<const StoredBlock> blocks, bool from_thread_start, std::uint32_t inherited,
               std::uint8_t inherited_marks = kCallInherited);
  /// Before the last segment: what is open at its end was so until then, when the thread or its process ended. 0: not
  /// known.
  void ended(std::uint64_t ticks) { ended_ = ticks; }
  /// Who stops it, and who counts; which blocks, the caller of segment() says.
  void limit(const RebuildLimits& limits) { limits_ = limits; }
  Calls finish();

  /// A call whose enter lies before its segment.
  struct Unentered {
    std::uint32_t function;
    std::uint8_t marks;
    std::uint64_t end;
    std::size_t before_row;  ///< its exit came before this row was begun; good while no rows were sent
  };
  /// Those of a segment, innermost first, and the time of the segment's first event.
  struct SegmentBegin {
    std::vector<Unentered> calls;
    std::uint64_t first = 0;
  };
  /// Before the first segment: rows go to `use` in pieces of about `rows`, and not into finish(). `has_gaps`: several
  /// segments will come. An empty `use`: they go nowhere.
  void send_pieces(PieceUse use, std::size_t rows, bool has_gaps);
  /// With pieces, before the first segment: what another Rebuilder of the same segments has from begins(). Rows then
  /// have these calls as parents; else these come as the segment's last piece.
  void know_begins(std::vector<SegmentBegin> begins);
  /// With pieces, behind the last segment.
  std::vector<SegmentBegin> begins();
  /// Instead of finish(): the last piece, which has the sums alone. Returns the memory.
  Calls finish_pieces(std::uint64_t missing_blocks);

  /// What is open behind `blocks`, a segment's or its first ones. The only use of a Rebuilder that makes no rows.
  OpenState open_behind(std::span<const StoredBlock> blocks, bool from_thread_start, std::uint32_t inherited,
                        std::uint8_t inherited_marks);

 private:
  using Walk = walk::Walker<Rebuilder, walk::GrowingMemory<>>;
  friend Walk;
  /// Calls of a function among the stack's, those that were cut left out.
  struct OpenCount {
    std::uint64_t blinded = 0;  // what was counted before the function was last blinded is cut
    std::uint64_t calls = 0;
  };

  void begin_segment(bool from_thread_start, std::uint32_t inherited);
  void consume_all(std::span<const StoredBlock> blocks);
  std::size_t walk_some(const format::Event* events, std::size_t count, std::uint64_t block_ticks);
  void bound_ids();
  void count_oddities();
  void insert_open_begins(std::size_t first_row);
  OpenCount& open_count(std::uint32_t id);
  std::uint8_t marks_at(walk::Way way) const;
  bool table_has(std::uint32_t id) const { return id < functions_.size() && functions_[id].id != 0; }

  // What the walker asks for; a call's serial is its row.
  static constexpr bool kSwitches = true;
  static constexpr bool kTranslates = false;
  static constexpr bool kMovesZones = true;
  struct Hot;
  void ended(const Open* stack, std::size_t at, std::uint64_t end, walk::Way way);
  bool room_for_unentered();
  void exit_unentered(std::uint32_t id, std::uint64_t ticks, walk::Way way);
  bool tail_owner(std::uint32_t id, std::uint32_t& owner) {
    if (id >= functions_.size() || !functions_[id].tail_exit) return false;
    tail_marks_ = functions_[id].tail_return ? std::uint8_t{kCallTail} : kCallLeft;
    owner = functions_[id].of;
    return true;
  }
  std::uint64_t& count_of(std::uint32_t id) { return open_count(id).calls; }
  std::uint64_t counted(std::uint32_t id) { return open_count_.contains(id) ? open_count(id).calls : 0; }
  void clear_counts() { open_count_.clear(); }
  void see_unknown(std::uint32_t id) { calls_.unknown_ids += table_has(id) ? 0 : 1; }
  void refused(std::uint64_t count) { calls_.beyond_limit += count; }
  void ignored() { ++calls_.ignored; }
  bool make_room_for(std::size_t count);
  /// A name that came without a place in the source: of ITT or NVTX. A wait for a lock has values, and ends in order.
  bool is_loose_zone(std::uint32_t id) const {
    return table_has(id) && functions_[id].note && functions_[id].line == 0 && functions_[id].file.empty() &&
           functions_[id].values.empty();
  }
  bool move_up(std::uint32_t first, std::uint32_t ended);
  std::uint32_t resumed(const Open& open, const Open* stack, std::size_t top);
  void place_set() { keep_rows_ = std::max(keep_rows_, rows_); }
  void noted(const format::NoteHead& head, const format::Event* words, std::uint64_t ticks);
  void jumped_far() {}
  void lost() {}

  // cuts.cc
  void pass_switches(std::uint64_t ticks);
  bool is_cut(const Open& open) const { return cursor_.blinded_since(open.function, open.begin + 1); }
  void end_cut(std::uint64_t ticks);
  std::uint64_t next_switch() const { return cursor_.next(); }
  bool blinded_since(std::uint32_t id, std::uint64_t ticks) const { return cursor_.blinded_since(id, ticks); }
  bool is_blind(std::uint32_t id) const;
  bool began_unseen(std::uint32_t id) const;
  walk::Place standing(walk::Place place);

  // pieces.cc
  struct Sending;
  void walk_and_send(const BlockView& block);
  void begin_sending(std::uint32_t inherited, std::uint8_t inherited_marks);
  void end_sending();
  void put_unentered(const SegmentBegin& begin);
  void end_unentered();
  void send(std::size_t cut);
  void use_piece(std::size_t cut);
  void reserve_rows(std::size_t more);
  void forget_rows(std::size_t cut);

  EventReader read_;
  std::span<const Function> functions_;
  std::uint32_t known_ = 0;           // ids 1 to known_ need no look into the table
  const std::uint32_t last_id_;       // see Process::last_id
  const std::uint64_t min_duration_;  // ticks: shorter calls with nothing in them are no rows
  std::size_t keep_rows_ = 0;         // rows before this one stay, however short
  Calls calls_;
  bool reuses_ = false;  // the columns' memory
  std::size_t rows_ = 0;
  std::size_t reserved_;  // all enters of the thread and the rows made besides so far: room for every row to come

  std::vector<Unentered> open_begins_;
  std::uint32_t root_ = kNoParent;                // parent of rows that nothing known encloses
  std::size_t root_depth_ = 0;                    // calls that it and its parents are
  std::unique_ptr<Sending> sending_;              // null: rows stay
  std::size_t first_note_ = 0;                    // of the segment
  std::vector<std::uint32_t> notes_open_begins_;  // how many there were at each of the segment's notes
  std::uint64_t ended_ = 0;                       // see ended()
  bool overlaps_ = false;                         // a segment begins before the one before it ended

  std::unordered_map<std::uint32_t, OpenCount> open_count_;

  RebuildLimits limits_;

  SwitchCursor cursor_;
  std::uint8_t tail_marks_ = kCallTail;                   // of the tail call whose exit is at hand
  std::unordered_map<std::uint32_t, walk::Place> moved_;  // where places count that were set in a cut call, by its row
};

}  // namespace karst::reader
