// Rebuilds the calls of one thread from its events: calls.cc has the common way, ways_out.cc what marks say.
//
// A thread's kept history is a list of segments, each without a gap in the block sequence; each is rebuilt alone,
// for a call's two ends can only meet within one:
//
//   kept blocks      [ 7 8 9 ]       [ 12 13 ]
//   calls        ...==          ==............       (open begin)  (open end)
//                    ==    ==       ==    ==
//
// Rules, in the order of their need:
// - An enter is a row. An exit of the innermost open call ends it.
// - An exit of an outer open call: the calls within it ended without being seen to (a lost exit, a way out that nobody
//   watches). They are marked open, their last sure moment is the event before.
// - An exit while nothing is open: the enter lies before the segment. The call starts at the
//   segment's first event, marked open, and becomes the parent of all that had none so far.
// - An exit of something that is not open while other calls are: it cannot be; counted, left out.
// - A jump ends the calls begun since its place was set; if that lies before the segment, all whose enter is known.
// - A switch of stacks puts the calls of the stack that is left aside, marked open; when the thread comes back they go
//   on as new rows. A stack that was never seen in a whole history is one made new: its calls are below those of
//   the stack that switched to it.
// - Switches (switches.h): events of blind functions are ignored. A call that is open when its function is blinded is
// cut:
//   it keeps its place until the calls within it have ended, as it lasts at least as long, and its own exit counts no
//   more.
// - A call that is shorter than the process's least duration, and has nothing in it, is left out: the process could not
//   do so itself where a block ended between enter and exit, or a signal handler came.
// - What is open when the segment ends is marked open, its last sure moment is the last event; after the last segment
//   the end of the thread or of its process, if it has come.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/event.h"
#include "reader/model.h"
#include "reader/open_state.h"
#include "reader/partial.h"
#include "reader/trace.h"

namespace karst::reader {

class Rebuilder {
 public:
  /// `rows`: the enters of the thread, all of them.
  Rebuilder(const Process& process, std::size_t rows);

  /// `inherited`: so many first enters are those of calls that began in another process.
  /// `inherited_marks`: what they are marked with.
  void segment(std::span<const BlockView> blocks, bool from_thread_start, std::uint32_t inherited,
               std::uint8_t inherited_marks = kCallInherited);
  /// Before the last segment: what is open at its end was so until then, when the thread or its process ended. 0: not
  /// known.
  void ended(std::uint64_t ticks) { ended_ = ticks; }
  /// Who stops it, and who counts; which blocks, the caller of segment() says.
  void limit(const RebuildLimits& limits) { limits_ = limits; }
  Calls finish();

  /// What is open behind `blocks`, a segment's or its first ones. The only use of a Rebuilder that makes no rows.
  OpenState open_behind(std::span<const BlockView> blocks, bool from_thread_start, std::uint32_t inherited,
                        std::uint8_t inherited_marks);

 private:
  struct Open {
    std::uint64_t begin;
    std::uint32_t row;
    std::uint32_t function;
  };
  struct OpenBegin {
    std::uint32_t function;
    std::uint8_t marks;
    std::uint64_t end;
    std::size_t before_row;  // its exit came before this row was begun
  };
  /// A stack that runs because the one before it switched to it.
  struct Below {
    std::uint64_t left_at;  // the place where the one before it left
    std::size_t base;       // of stack_: its own calls begin here
  };
  struct Place {
    std::size_t depth;  // calls that were open
    std::uint32_t row;  // of the innermost of them
  };

  /// Functions open on a stack that was put aside, and when that was.
  struct Aside {
    std::vector<std::uint32_t> functions;
    std::uint64_t ticks = 0;
  };
  /// Calls of a function among the stack's, those that were cut left out.
  struct OpenCount {
    std::uint64_t blinded = 0;  // what was counted before the function was last blinded is cut
    std::uint64_t calls = 0;
  };

  // calls.cc
  void start_segment(bool from_thread_start, std::uint32_t inherited);
  void consume_all(std::span<const BlockView> blocks);
  template <bool kSwitching>
  void consume(const BlockView& block);
  void exit_elsewhere(std::uint32_t id, std::uint64_t ticks, std::uint64_t last_inside, std::uint8_t marks);
  void end_top(std::uint64_t end, std::uint8_t marks);
  void insert_open_begins(std::size_t first_row);
  OpenCount& count_of(std::uint32_t id);
  bool table_has(std::uint32_t id) const { return id < functions_.size() && functions_[id].id != 0; }
  bool out_of_rows() const { return rows_ + open_begins_.size() >= kMaxRows; }

  // ways_out.cc
  std::size_t read_mark(std::span<const format::Event> words, std::uint64_t epoch);
  void unwound(std::uint32_t id, std::uint64_t ticks, std::uint64_t before);
  void set_place(std::uint64_t place);
  void jump(std::uint64_t place, std::uint64_t ticks);
  void switch_stack(std::uint64_t from, std::uint64_t to, std::uint64_t ticks);
  void put_aside(std::uint64_t place, std::size_t down_to, std::uint64_t ticks);
  void resume(std::uint64_t place, std::uint64_t ticks);
  void see_time(std::uint64_t ticks);

  // cuts.cc
  void pass_switches(std::uint64_t ticks);
  bool is_cut(const Open& open) const { return cursor_.blinded_since(open.function, open.begin + 1); }
  void end_cut(std::uint64_t ticks);
  bool is_blind(std::uint32_t id) const;
  bool began_unseen(std::uint32_t id) const;
  Place standing(Place place);

  std::span<const Function> functions_;
  std::uint32_t known_ = 0;           // ids 1 to known_ need no look into the table
  const std::uint64_t min_duration_;  // ticks: shorter calls with nothing in them are no rows
  std::size_t keep_rows_ = 0;         // rows before this one stay, however short
  Calls calls_;
  std::size_t rows_ = 0;
  std::size_t reserved_;  // all enters of the thread and the rows made besides so far: room for every row to come

  Column<Open> stack_;
  std::size_t top_ = 0;   // entries of stack_ in use; its own size is not kept up to date
  std::size_t base_ = 0;  // of the current stack's own calls
  std::vector<OpenBegin> open_begins_;
  bool started_ = false;       // the segment has seen an event
  std::uint64_t first_ = 0;    // its first event's time
  std::uint64_t last_ = 0;     // the last event's time
  std::uint64_t highest_ = 0;  // the latest time before the clock went back
  std::uint64_t ended_ = 0;    // see ended()
  bool from_thread_start_ = false;
  bool knows_stacks_ = false;  // a stack that was never seen is a new one
  bool lost_stacks_ = false;   // there was a switch of stacks while that was not so

  std::unordered_map<std::uint64_t, Place> places_;  // by event_place
  std::vector<Below> below_;                         // outermost first
  std::unordered_map<std::uint64_t, Aside> aside_;   // by place
  std::uint64_t resumed_ = 0;                        // rows made by resume()

  // How often each function is on the stack. Kept only once a deep stack was searched in vain, so
  // that impossible exits cannot make the work quadratic.
  bool counting_ = false;
  std::unordered_map<std::uint32_t, OpenCount> open_count_;

  RebuildLimits limits_;

  bool switching_;  // there are switches
  SwitchCursor cursor_;
  std::size_t old_ = 0;                             // entries of stack_ below this one may be cut
  std::unordered_map<std::uint32_t, Place> moved_;  // where places count that were set in a cut call, by its row
};

}  // namespace karst::reader
