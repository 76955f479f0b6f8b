// SPDX-License-Identifier: MIT
// Threads: how one joins, gets its blocks, and leaves.
#pragma once
#include <cstdint>

#include "arch/cpu.h"
#include "format/note.h"
#include "runtime/recording/state.h"

namespace karst::runtime {

/// At start. False when the states cannot be had. `no_system_calls`: make none for a thread that has joined.
bool prepare_threads(bool no_system_calls);

/// In a child that has just been forked: the calling thread, which forked, belongs to no history.
void forget_thread();
/// In a forked child that gets an arena of its own: all threads begin anew. `forgotten`: the thread that forked has
/// called forget_thread(). False when memory is short.
bool renew_threads(bool forgotten);

/// Writes the kernel's names of all living threads into the arena. At the process's orderly end.
void note_thread_names();

/// The calling thread may have a new name: the same for it alone. Any context.
void note_own_name();

/// How far the thread of this entry has come, as any other thread sees it at one moment.
struct ThreadProgress {
  std::uint64_t events;              ///< since it joined, slots left empty included
  const format::BlockHeader* block;  ///< where it writes now; null: nowhere that is kept. May be recycled meanwhile
  std::uint32_t used;                ///< slots of the block
};
ThreadProgress progress_of(std::uint32_t thread);

/// The calling thread's state, which it gets now if it has had no event; null when there is none to be had. Requires an
/// arena of this process's own. Any context.
ThreadState* own_state();
/// Events of the calling thread go nowhere from now on, until it ends. Any context.
void ignore_thread();
/// While others need memory the calling thread keeps `blocks` of its history, if that is more than all threads'. False:
/// the floors of such threads would be more than a fourth of memory; then it is as before. Any context.
bool set_history_floor(ThreadState& state, std::uint32_t blocks);

/// A number that changes while threads record. Any thread; may be wrong by chance.
std::uint64_t recording_progress();

/// What the calling thread is inside of.
struct Inside {
  std::uint16_t slow_paths;  ///< one, and those of the signals' handlers that interrupted them
  bool handler;              ///< of a call (values/handlers.h)
};
extern __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread Inside t_inside;

/// Which stack the calling thread ran on last, as fibers/stacks.h has it.
extern "C" __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread std::uint32_t karst_stack;

/// Events of this process go nowhere from now on, for good.
void stop_recording();
bool recording_has_stopped();

/// Changes all hooks to the kind that finds its thread by kernel id; see karst_hook_trace_by_tid. Any thread.
void find_threads_by_tid();
bool threads_are_found_by_tid();

/// True if the calling thread has had an event and its next one will be kept. Any context.
bool is_recording();

/// A note would be kept. Any context.
bool may_record_notes();

/// Records up to 3 words in slots of one block that follow each other, whatever handlers do in between. Events get
/// the present time, places stay as they are (format/event.h). Nothing if !is_recording(). Any context.
void record_group(const format::Event* words, std::uint32_t count);
/// Notes what tracing took of the calling thread, up to now; too little is not told. Nothing if !is_recording(). Any
/// context.
void record_overhead(format::Overhead why, std::uint64_t ticks);
/// The same of its own life.
class OverheadTime {
 public:
  explicit OverheadTime(format::Overhead why) : why_(why) {}
  ~OverheadTime() { record_overhead(why_, arch::time_stamp() - begin_); }
  OverheadTime(const OverheadTime&) = delete;
  OverheadTime& operator=(const OverheadTime&) = delete;

 private:
  const format::Overhead why_;
  const std::uint64_t begin_ = arch::time_stamp();
};
/// Records a note (format/note.h), also as the thread's first event. `bytes` are the program's; kMostNoteBytes at most.
/// Nothing while nothing is recorded. Any context.
void record_note(format::NoteKind kind, std::uint32_t name, const unsigned char* bytes, std::uint32_t size);

/// The same with what each word says, kNoteBytesInWord bytes.
void record_note_words(format::NoteKind kind, std::uint32_t name, const std::uint64_t* payloads, std::uint32_t words);

/// The same of 1 to 16 bytes, the first one in the lowest bits: the cheapest way.
void record_short_note(format::NoteKind kind, std::uint32_t name, unsigned __int128 bytes, std::uint32_t size);

/// The same of bytes behind which 7 more may be read. `call`: what a hook would record next, recorded behind the note
/// with the same time. False: nothing was recorded.
bool record_note_and_call(format::NoteKind kind, std::uint32_t name, const unsigned char* bytes, std::uint32_t size,
                          format::Event call);
/// The same of record_short_note().
bool record_short_note_and_call(format::NoteKind kind, std::uint32_t name, unsigned __int128 bytes, std::uint32_t size,
                                format::Event call);

/// The same with bytes that lie apart, `size` in all.
struct NotePiece {
  const unsigned char* from;
  std::uint32_t size;  ///< not 0
};
void record_note(format::NoteKind kind, std::uint32_t name, const NotePiece* pieces, std::uint32_t count,
                 std::uint32_t size);

extern "C" {
/// Called by a hook that has no slot: the calling thread's first event, a full block, a new epoch, a forked child.
/// After it the thread has a slot (of a block that is thrown away, if there is no memory). Async-signal-safe; takes no
/// lock, makes no system call but at a thread's first event and when the arena grows.
__attribute__((visibility("hidden"))) void karst_slow_path();
__attribute__((visibility("hidden"))) void karst_record_by_tid(std::uint64_t event_low_bits);
/// Ticks. Calls that are shorter and have nothing in them are taken back; 0: none are. Set at start.
extern __attribute__((visibility("hidden"))) std::uint64_t karst_min_duration;
}

}  // namespace karst::runtime
