// SPDX-License-Identifier: MIT
// The arena: the shared memory that a traced process fills and that `karst` reads from outside.
//
//   +-------------+---------+----------+---------+-----------------------------------+---------+-----------+------+
//   | ArenaHeader | control | switches | threads | block 0 | block 1 | ... | block N-1 | modules | functions | text |
//   +-------------+---------+----------+---------+-----------------------------------+---------+-----------+------+
//
// It lies in a memfd, or in a file of the user's choice (file=PATH), which outlives process and machine. Tables are
// reserved at their greatest size and take memory only where they are used; blocks are made real in steps
// (ArenaHeader::blocks_reserved). The runtime alone writes, with two exceptions: kArenaFunctionOn and
// kArenaFunctionKeep, what is wanted in the control page (format/control.h), what is to be watched
// (format/watch.h), which values are wanted (format/values.h), and BlockHeader::taken. A reader trusts nothing in here:
// the program may scribble over it, die in the middle of a store, or be hostile.
//
// block    4 KiB: a BlockHeader and 504 events, zero until written. A reader takes events up to the last
//          non-zero one; a zero before it is the slot of a hook that a signal interrupted.
// recycle  when no fresh block is left, a hand walks the blocks in the order they were handed out and takes
//          one that is history, not within its living thread's floor: not the block met, but the oldest of the same
//          thread, found by a list through its blocks, so that what is kept of a thread has no gap.
//          A block in which an interrupted hook has still to fill its slot is spared (taken off the list, and met by
//          the hand some rounds later): the hook would write into what belongs to others by then. `generation` is odd
//          meanwhile, so a copy made at that moment is known to be torn.
#ifndef KARST_FORMAT_ARENA_H
#define KARST_FORMAT_ARENA_H

#include "format/event.h"

#define KARST_BLOCK_SIZE 4096
#define KARST_BLOCK_HEADER_SIZE 64

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

#include "format/file_identity.h"

namespace karst::format {

inline constexpr std::uint64_t kArenaMagic = 0x31414E4552414B00ULL;  // "\0KARENA1"
/// Raised whenever runtime and reader would misunderstand each other; they must be equal.
inline constexpr std::uint32_t kArenaVersion = 11;

inline constexpr std::uint32_t kBlockSize = KARST_BLOCK_SIZE;
inline constexpr std::uint32_t kBlockHeaderSize = KARST_BLOCK_HEADER_SIZE;
inline constexpr std::uint32_t kEventsPerBlock = (kBlockSize - kBlockHeaderSize) / sizeof(Event);

inline constexpr std::uint32_t kArenaModules = 4096;
inline constexpr std::uint32_t kArenaThreads = 1 << 16;
inline constexpr std::uint32_t kArenaTextSize = 16 << 20;
/// Of counters: 256 MiB, 65,536 threads that call one module's functions.
inline constexpr std::uint32_t kArenaCountPages = 1 << 16;

/// The clocks at one moment while the process ran.
struct ArenaClock {
  std::uint64_t ticks;
  std::uint64_t monotonic_raw_ns;
  std::uint64_t realtime_ns;
  std::uint64_t uncertainty_ticks;
};
static_assert(sizeof(ArenaClock) == 32);

enum ArenaBeginning : std::uint32_t {
  kBeganOff = 1,   ///< with off=1
  kBeganLate = 2,  ///< libkarst was brought into the process as it ran (karst attach)
};

struct ArenaHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t state;  ///< ArenaState
  std::uint64_t size;   ///< bytes of the whole arena
  std::uint64_t modules_offset;
  std::uint64_t functions_offset;
  std::uint64_t threads_offset;
  std::uint64_t text_offset;
  std::uint64_t blocks_offset;
  std::uint32_t module_capacity;
  std::uint32_t function_capacity;
  std::uint32_t thread_capacity;
  std::uint32_t text_capacity;
  std::uint32_t block_capacity;  ///< shrinks when memory for more cannot be had
  std::uint32_t pid;
  std::uint32_t parent_pid;
  std::uint32_t began;  ///< ArenaBeginning bits
  std::uint64_t start_ticks;
  std::uint64_t start_monotonic_raw_ns;
  std::uint64_t start_realtime_ns;
  std::uint64_t end_ticks;  ///< orderly end (exit, return from main); 0 otherwise
  std::uint64_t start_uncertainty_ticks;
  std::uint32_t executable_offset;  ///< in text
  std::uint32_t executable_size;
  std::uint32_t command_line_offset;  ///< in text; arguments, each ended by a NUL byte
  std::uint32_t command_line_size;
  std::uint32_t options_offset;
  std::uint32_t options_size;
  // Written while the program runs, with atomic operations.
  std::uint32_t module_count;
  std::uint32_t function_count;  ///< ids 1..function_count are in use
  std::uint32_t thread_count;    ///< table entries ever used
  std::uint32_t text_used;
  std::uint32_t blocks_reserved;
  std::uint32_t live_threads;
  std::uint64_t hand;  ///< blocks handed out so far, skipped ones included; modulo capacity the next candidate
  std::uint64_t overwritten_events;  ///< of threads whose entries were reused; the others keep their own counts
  std::uint64_t lost_events;
  std::uint64_t threads_total;       ///< threads that ever joined
  std::uint64_t patch_ns;            ///< time taken to find and patch the sleds at start
  std::uint64_t sites;               ///< sleds found, entries and exits
  std::uint64_t control_offset;      ///< of the ArenaControl (format/control.h), which outsiders may write to
  std::uint64_t min_duration_ticks;  ///< calls that are shorter and contain nothing are taken back; 0: none are
  std::uint64_t
      clock_period_ticks;  ///< 0: the TSC itself stamps events; else a thread stores it about so often at least
  std::uint64_t clock_longest_ticks;  ///< the longest time that this thread did not
  std::uint32_t call_cost;            ///< as CostRecord::call; 0: not known
  std::uint32_t call_cost_inside;     ///< as CostRecord::inside
  std::uint64_t counts_offset;        ///< not 0: calls are counted, not recorded (see CountPage)
  std::uint32_t count_capacity;       ///< pages of counters
  std::uint32_t count_pages;          ///< of them in use
  std::uint64_t uncounted_calls;      ///< for whose counters there was no memory
  std::uint64_t watching_offset;      ///< of the ArenaWatching (format/watch.h); 0: there is none
  // With the clocks at the start these give the clock's rate to whoever finds the arena on another day.
  std::uint64_t clock_readings;  ///< made so far, each into clocks[number % 2], then counted
  ArenaClock clocks[2];
  std::uint8_t boot_id[16];        ///< of the kernel that ran the process; zero: not known
  std::uint64_t values_offset;     ///< of the ArenaValues (format/values.h); 0: there are none
  std::uint32_t call_cost_off_by;  ///< as CostRecord::off_by
  std::uint32_t reserved;
  std::uint64_t
      reserving_ticks;  ///< that threads and the maintenance process took to make blocks real, without long waits
};
static_assert(sizeof(ArenaHeader) == 416 && sizeof(ArenaHeader) <= 4096);

enum class ArenaState : std::uint32_t {
  kStarting = 1,  ///< tables are being filled
  kReady = 2,     ///< tables are complete; the program waits for the session's go or runs
};

struct ArenaModule {
  std::uint64_t bias;
  std::uint64_t text_begin;
  std::uint64_t text_end;
  std::uint64_t loaded_ticks;
  std::uint64_t unloaded_ticks;
  std::uint32_t path_offset;  ///< in text
  std::uint32_t path_size;
  std::uint32_t first_function;  ///< ids are first_function .. first_function + function_count - 1
  std::uint32_t function_count;
  std::uint8_t build_id[28];  ///< with kModuleByFile: a FileIdentity
  std::uint32_t build_id_size;
  std::uint32_t flags;     ///< as of ModuleRecord
  std::uint32_t reserved;  ///< 0
};
static_assert(sizeof(ArenaModule) == 96 && sizeof(ArenaModule::build_id) == kFileIdentitySize);

struct ArenaFunction {
  std::uint64_t address;  ///< of the entry sled
  std::uint32_t module;
  std::uint32_t flags;  ///< ArenaFunctionFlag bits; above them the number of its values (format/values.h)
};
static_assert(sizeof(ArenaFunction) == 16);

enum ArenaFunctionFlag : std::uint32_t {
  kArenaFunctionOn = 1,
  /// A second id of the function of the same module and address: an exit with it was a tail call's.
  kArenaFunctionTailExit = 2,
  kArenaFunctionAlways = 4,  ///< KARST_ALWAYS in the source: filters and budgets leave it on
  kArenaFunctionCulled = 8,  ///< the budget keeps it out for now; set and cleared by the process alone
  /// On and not culled when switches were last applied, which the log of switches has; set and cleared by the process
  /// alone.
  kArenaFunctionSwitchedOn = 32,
  kArenaFunctionSwitchingOn = 64,  ///< what it is about to be; the process's own
  kArenaFunctionNote = 128,        ///< a name of notes and zones: its address is where its text lies (format/note.h)
  kArenaFunctionLate = 256,        ///< its calls are recorded when their arguments may be gone (format/patch_table.h)
  kArenaFunctionTailReturn = 512,  ///< with kArenaFunctionTailExit: an exit with it means that the callee has returned
  kArenaFunctionKeep = 16,         ///< --keep: budgets leave it on; set by `karst run` before the program is told to go
};

/// Two lines of the caches. The first one is the thread's, which writes to it at each block; of the second one others
/// take its oldest blocks.
struct ArenaThread {
  std::uint32_t tid;
  std::uint32_t state;  ///< ThreadLife
  std::uint64_t joined_ticks;
  std::uint64_t exited_ticks;
  std::uint64_t lost_events;
  std::uint64_t begun_blocks;  ///< blocks that were given to this thread, by itself alone
  std::uint32_t kept_blocks;   ///< copies of its blocks that are kept (format/watch.h): nobody else gets the entry
  std::uint32_t floor_blocks;  ///< as much history it keeps (karst_thread_set_history); 0: as all threads
  char name[16];               ///< as the kernel knows it; NUL-terminated unless 16 long

  std::uint64_t overwritten_events;
  std::uint64_t recycled_blocks;  ///< of those that were begun; the others hold the thread's history
  std::uint64_t oldest;           ///< block_key() of the thread's block to recycle first; its low half 0: there is none
  std::uint32_t given_name;       ///< in text: what the program calls the thread (karst_thread_set_name)
  std::uint32_t given_name_size;  ///< 0: it has not, or is changing it
  std::uint32_t given_name_space;  ///< bytes of text that are the entry's, for this name and later ones
  std::uint8_t pad[28];
};
static_assert(offsetof(ArenaThread, overwritten_events) == 64);
static_assert(sizeof(ArenaThread) == 128);

enum class ThreadLife : std::uint32_t { kFree = 0, kLive = 1, kExited = 2, kClaimed = 3 };

struct BlockHeader {
  std::uint64_t generation;    ///< odd while the block changes hands
  std::uint32_t state;         ///< BlockState
  std::uint32_t thread;        ///< index into threads
  std::uint64_t sequence;      ///< of this block in its thread, from 0
  std::uint64_t ticks;         ///< full clock at the block's start
  std::uint32_t holes_before;  ///< not 0: among so many first slots there were empty ones when the block was left
  std::uint32_t spared;        ///< times it was not recycled because of them
  std::uint32_t next;          ///< index + 1 of the thread's following block, in history and among its spare ones
  std::uint32_t taken;         ///< by who takes all: the low half of the generation that it has copied whole
  std::uint32_t reserved[4];
};
static_assert(sizeof(BlockHeader) == kBlockHeaderSize);  // its last 8 bytes stay 0: they are no enter (hooks.S)

/// Under `karst run --count`: the counters of kCountsPerPage ids that follow each other, of one thread. The owners'
/// table, one CountOwner for each page, lies at counts_offset, the pages behind it at the next multiple of 4 KiB. The
/// number of calls of a function is the sum over all pages of its ids: when a thread ends, the next one goes on with
/// its pages.
inline constexpr std::uint32_t kCountsPerPage = kBlockSize / sizeof(std::uint64_t);
inline constexpr std::uint32_t kCountGroups = (kMaxFunctionId + kCountsPerPage) / kCountsPerPage;
struct CountPage {
  std::uint64_t calls[kCountsPerPage];
};
static_assert(sizeof(CountPage) == kBlockSize);
struct CountOwner {
  std::uint32_t group;  ///< 1 + the first id / kCountsPerPage; 0: the page is not in use yet
  std::uint32_t used;   ///< 1: a thread counts here
};
static_assert(sizeof(CountOwner) == 8);

/// A block in the order of recycling: the low half of its number in its thread, and its index + 1.
constexpr std::uint64_t block_key(std::uint64_t sequence, std::uint32_t index) { return sequence << 32 | (index + 1U); }

enum class BlockState : std::uint32_t {
  kFresh = 0,
  kActive = 1,  ///< its thread writes here
  kFull = 2,    ///< history
  kClaimed = 3  ///< changing hands, or spare: claimed ahead by a thread
};

}  // namespace karst::format
#endif
#endif
