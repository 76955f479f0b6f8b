// SPDX-License-Identifier: MIT
// The .karst file, version 1. docs/trace-format.md is this header in prose; a test compares the two.
//
//   file  := FileHeader chunk*
//   chunk := ChunkHeader payload padding      (padding: zero bytes up to a multiple of 8)
//   table := TableHeader record*count heap    (the payload of every chunk type but BLKS, PACK and ENDT)
//
// All integers are little-endian and fixed-width; there are no pointers and no bit fields.
// Text lies in the heap of its own chunk and is named by StringRef. A record may be longer
// than this header knows (a later minor version): readers step by TableHeader::record_size
// and read the part they know. Unknown chunk types are skipped. Times are in ticks of the
// trace's clock unless a name says ns. docs/trace-format.md has the order in which Karst writes chunks; readers accept
// any. A file without ENDT is truncated.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/event.h"

namespace karst::format {

inline constexpr unsigned char kFileMagic[8] = {0x89, 'K', 'A', 'R', 'S', 'T', '\r', '\n'};
inline constexpr std::uint16_t kMajorVersion = 1;  ///< a reader refuses a greater one
inline constexpr std::uint16_t kMinorVersion = 0;  ///< additions that old readers may skip

struct FileHeader {
  unsigned char magic[8];
  std::uint16_t major;
  std::uint16_t minor;
  std::uint32_t header_size;  ///< bytes from the file's start to the first chunk
  std::uint64_t flags;        ///< FileFlag bits
  std::uint32_t reserved;     ///< 0
  std::uint32_t crc;          ///< CRC-32C of the 28 bytes before it
};
static_assert(sizeof(FileHeader) == 32 && offsetof(FileHeader, crc) == 28);

enum FileFlag : std::uint64_t {
  kFileResolved = 1,  ///< names (SYMB) are inside
  kFileGrowing = 2,   ///< chunks are still added at its end, or whoever did so was ended by force
};

constexpr std::uint32_t fourcc(const char (&letters)[5]) {
  std::uint32_t type = 0;
  for (int i = 3; i >= 0; --i) type = type << 8 | static_cast<unsigned char>(letters[i]);
  return type;
}

/// Every chunk type of this version, each once: X(name, letters, record, reveals). `record` is what its table, its
/// blocks or its end consist of; `reveals` says that `karst resolve --strip` has to look into it. format/chunk_types.h
/// makes the table of it that readers and writers go by; docs/trace-format.md is compared with it.
#define KARST_CHUNK_TYPES(X)                                     \
  X(kProcesses, "PROC", ProcessRecord, true)                     \
  X(kClock, "CLCK", ClockRecord, true)                           \
  X(kModules, "MODL", ModuleRecord, true)                        \
  X(kFunctions, "FUNC", FunctionRecord, false)                   \
  X(kSymbols, "SYMB", SymbolRecord, true)                        \
  X(kThreads, "THRD", ThreadRecord, true)                        \
  X(kSwitches, "SWCH", SwitchRecord, false)                      \
  X(kModes, "MODE", ModeRecord, false)                           \
  X(kCosts, "COST", CostRecord, false)                           \
  X(kBlocks, "BLKS", BlockRecord, true)                          \
  X(kPacked, "PACK", PackedHeader, true)                         \
  X(kInlined, "INLN", InlinedRecord, true)                       \
  X(kSource, "SRCF", SourceRecord, true)                         \
  X(kStateSource, "STSR", StateSourceRecord, true)               \
  X(kTasks, "TASK", TaskRecord, true)                            \
  X(kStateEvents, "STEV", StateRecord, false)                    \
  X(kSampleSource, "SMSR", SampleSourceRecord, true)             \
  X(kSampledFunctions, "SMFN", SampledFunctionRecord, true)      \
  X(kSampledStacks, "SMST", SampledStackRecord, false)           \
  X(kSamples, "SMPL", SampleRecord, false)                       \
  X(kSampledWaits, "SMWT", SampleRecord, false)                  \
  X(kMoments, "MOMT", MomentRecord, true) /* format/moments.h */ \
  X(kUntraced, "UNTR", UntracedRecord, true)                     \
  X(kSeries, "SERI", SeriesRecord, false)                        \
  X(kPoints, "SRPT", PointRecord, false)                         \
  X(kEnd, "ENDT", EndRecord, false)

enum class ChunkType : std::uint32_t {
#define KARST_CHUNK_TYPE(name, letters, record, reveals) name = fourcc(letters),
  KARST_CHUNK_TYPES(KARST_CHUNK_TYPE)
#undef KARST_CHUNK_TYPE
};

enum class Encoding : std::uint32_t { kRaw = 0, kZstd = 1 };

struct ChunkHeader {
  std::uint32_t type;         ///< ChunkType
  std::uint32_t encoding;     ///< Encoding of the payload
  std::uint64_t stored_size;  ///< bytes of payload in the file, without padding
  std::uint64_t raw_size;     ///< bytes after decoding; equal to stored_size when raw
  std::uint32_t payload_crc;  ///< CRC-32C of the stored payload
  std::uint32_t header_crc;   ///< CRC-32C of the 28 bytes before it
};
static_assert(sizeof(ChunkHeader) == 32 && offsetof(ChunkHeader, header_crc) == 28);

/// A chunk's decoded payload is at most this long; writers split, readers refuse more.
inline constexpr std::uint64_t kMaxChunkSize = std::uint64_t{256} << 20;

/// A payload decodes to at most this many times its stored size: writers store it raw otherwise,
/// readers refuse more, so that a small hostile file cannot fill the memory.
inline constexpr std::uint64_t kMaxExpansion = 64;

struct StringRef {
  std::uint32_t offset;  ///< from the start of the chunk's heap
  std::uint32_t size;    ///< bytes; text is UTF-8, not terminated
};
static_assert(sizeof(StringRef) == 8);

struct TableHeader {
  std::uint32_t process;      ///< index of the process the records belong to; 0 in PROC, CLCK and SRCF
  std::uint32_t record_size;  ///< bytes a record
  std::uint32_t count;        ///< records
  std::uint32_t heap_size;    ///< bytes of heap after the records
};
static_assert(sizeof(TableHeader) == 16);

/// PROC. A process image: a pid that execs is a second process with the same pid.
struct ProcessRecord {
  std::uint32_t process;  ///< dense index in this file, from 0
  std::uint32_t pid;
  std::uint32_t parent_pid;
  std::uint32_t flags;               ///< ProcessFlag bits
  std::int32_t wait_status;          ///< as waitpid gives it; -1 when not known
  std::uint32_t parent;              ///< 1 + index of the process that forked it, or exec'd to become it; 0: not here
  std::uint64_t start_ticks;         ///< tracing began
  std::uint64_t end_ticks;           ///< the process was seen to have ended; 0 when it had not
  std::uint64_t overwritten_events;  ///< recycled because memory was full
  std::uint64_t lost_events;         ///< never recorded, because no block could be had
  StringRef name;
  StringRef command_line;  ///< arguments, each ended by a NUL byte
  StringRef executable;    ///< path
  StringRef options;       ///< KARST_OPTIONS as they were in force
};
static_assert(sizeof(ProcessRecord) == 88 && offsetof(ProcessRecord, name) == 56);

enum ProcessFlag : std::uint32_t {
  kProcessEnded = 1,    ///< seen to end before the trace was written
  kProcessOff = 2,      ///< started with tracing off
  kProcessDamaged = 4,  ///< its arena held values that cannot be; what was sound was kept
  kProcessForked = 8,   ///< a child by fork that has not called exec
  /// The process's log of switches was too short for all of them: the history before the first SWCH record was left
  /// out.
  kProcessSwitchesLost = 16,
  /// The processor's counter, which is the trace's clock, was not known to be constant and the same on all CPUs
  /// (format/clock_source.h).
  kProcessClockUnsure = 32,
  /// Tracing was brought into it as it ran (karst attach): the first block of a thread has the number 1, not 0, as
  /// calls may have been open.
  kProcessLate = 64,
};

/// CLCK. Pairs of readings of the trace's clock and the kernel's.
struct ClockRecord {
  std::uint64_t ticks;
  std::uint64_t monotonic_raw_ns;  ///< CLOCK_MONOTONIC_RAW at `ticks`
  std::uint64_t realtime_ns;       ///< CLOCK_REALTIME at `ticks`
  std::uint64_t ticks_per_second;  ///< the clock's rate, the same in all records
  std::uint32_t uncertainty_ns;    ///< the pair was read within this time
  std::uint32_t rate_source;       ///< RateSource
};
static_assert(sizeof(ClockRecord) == 40);

enum class RateSource : std::uint32_t { kPairs = 0, kPerf = 1, kCpuid = 2 };

/// MODL. An executable or library with sleds; or, by this path, all code that the process made while it ran: its bias
/// and range are 0, and addresses are those in memory.
inline constexpr char kGeneratedCode[] = "[jit]";
struct ModuleRecord {
  std::uint32_t module;          ///< dense index in its process, from 0
  std::uint32_t flags;           ///< ModuleFlag bits; from kModuleLeftAloneShift on, see there
  std::uint64_t bias;            ///< run-time address minus the address in the ELF file
  std::uint64_t text_begin;      ///< executable part, run-time addresses
  std::uint64_t text_end;        ///< one past
  std::uint64_t loaded_ticks;    ///< when it was registered
  std::uint64_t unloaded_ticks;  ///< 0: never
  StringRef path;
  StringRef build_id;  ///< raw bytes; with kModuleByFile: a FileIdentity (format/file_identity.h), or empty
};
static_assert(sizeof(ModuleRecord) == 64);

enum ModuleFlag : std::uint32_t {
  kModulePatched = 1,  ///< it was not built for tracing; its functions were patched as it was loaded, or as it ran
  kModuleByFile = 2,   ///< it has no build-id; which file it was is known instead, or (empty) could not be told
};
/// From this bit on: how many of the functions that were wanted were left alone, as they cannot be patched.
inline constexpr std::uint32_t kModuleLeftAloneShift = 8;

/// FUNC. Ids are unique in a process's life.
struct FunctionRecord {
  std::uint32_t id;
  std::uint32_t module;
  std::uint64_t address;   ///< run-time address of the entry sled
  std::uint32_t flags;     ///< FunctionFlag bits
  std::uint32_t reserved;  ///< 0
};
static_assert(sizeof(FunctionRecord) == 24);

enum FunctionFlag : std::uint32_t {
  kFunctionFiltered = 1,     ///< not chosen when the trace was written: --functions, --not-functions, lists, karst off
  kFunctionTailExit = 2,     ///< a second id of the function of the same module and address: its exits are tail calls'
  kFunctionAlways = 4,       ///< the source asks to trace it always
  kFunctionCulled = 8,       ///< the budget kept it out when the trace was written
  kFunctionTailReturn = 32,  ///< with kFunctionTailExit: its exits come when what the tail call called has returned
  kFunctionNote = 16,        ///< a name of notes and zones (format/note.h), not code
};

/// SYMB. Names for functions; only in resolved traces.
struct SymbolRecord {
  std::uint32_t id;     ///< FunctionRecord::id
  std::uint32_t line;   ///< 1-based line of the definition; 0 when not known
  StringRef name;       ///< demangled, with parameters, without return type
  StringRef link_name;  ///< as the linker knows it; empty when there is no symbol
  StringRef file;       ///< source path as in SRCF; empty when not known
  StringRef values;     ///< names and types of what its notes of values have (format/values.h), or types of a format's
                        ///< arguments (format/log.h); empty: not known
};
static_assert(sizeof(SymbolRecord) == 40);

/// THRD.
struct ThreadRecord {
  std::uint32_t thread;              ///< index in its process, as in BlockRecord
  std::uint32_t tid;                 ///< the kernel's thread id
  std::uint32_t flags;               ///< ThreadFlag bits
  std::uint32_t inherited;           ///< so many first enters are calls of the process before it, open when it forked
  std::uint64_t joined_ticks;        ///< first event
  std::uint64_t exited_ticks;        ///< 0: not seen to exit
  std::uint64_t overwritten_events;  ///< recycled because memory was full
  std::uint64_t lost_events;         ///< never recorded
  StringRef name;
};
static_assert(sizeof(ThreadRecord) == 56);

enum ThreadFlag : std::uint32_t {
  kThreadExited = 1,
  /// Its history is an excerpt: the first `inherited` enters are those of calls that were open at its begin, begun
  /// before.
  kThreadExcerpt = 2,
  /// A fiber's lane, as a part of a trace has it: what several threads did for it.
  kThreadFiber = 4,
};

/// SWCH. One change of which functions are traced, in the order of their making. Events of the functions are whole
/// before `begin_ticks` (if they were on) and from `end_ticks` on (if they are on then). Those in between, and all
/// until they are switched on again, say nothing; the end of a call that is open at `begin_ticks` is not known.
struct SwitchRecord {
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;  ///< 0: under way when the trace was written
  std::uint32_t first;      ///< FunctionRecord::id of the first function; 0: the process's own switch
  std::uint32_t count;      ///< functions from `first` on
  std::uint32_t on;         ///< 1: traced from `end_ticks` on; 0: not traced from `begin_ticks` on
  std::uint32_t reason;     ///< SwitchReason of format/control.h: 0 asked for, 1 the time was up, 2 the budget
};
static_assert(sizeof(SwitchRecord) == 32);
/// Its own reason, of a first record: what was before its end is not known, as the process's log was too short.
inline constexpr std::uint32_t kSwitchesUnknown = 3;

/// MODE. What a process's events leave out, and what stamped them, where that is not the usual: all calls, the TSC.
struct ModeRecord {
  std::uint64_t min_duration_ticks;   ///< calls shorter than this that contain nothing are left out; 0: none are
  std::uint64_t clock_period_ticks;   ///< not 0: a thread of the process stored the clock about so often
  std::uint64_t clock_longest_ticks;  ///< and this is the longest time that it did not, while anything was recorded
};
static_assert(sizeof(ModeRecord) == 24);

/// Parts of a tick that a CostRecord is in.
inline constexpr std::uint64_t kCallCostUnit = 64;

/// COST. What tracing a call costs its thread, as the process measured it at its start. In 1/kCallCostUnit ticks.
struct CostRecord {
  std::uint32_t call;    ///< of both its events
  std::uint32_t inside;  ///< of that between the times of the two; `call` at most
  std::uint32_t off_by;  ///< how much more or less a call may cost, by the code around it; 0: not known
};
static_assert(sizeof(CostRecord) == 12);

/// BLKS := BlocksHeader (BlockRecord Event*event_count)*count
struct BlocksHeader {
  std::uint32_t process;
  std::uint32_t count;
};
static_assert(sizeof(BlocksHeader) == 8);

/// A run of one thread's events. A thread's blocks have consecutive sequence numbers; a gap
/// means that blocks in between are missing. Blocks of one thread appear in rising order.
struct BlockRecord {
  std::uint32_t thread;       ///< ThreadRecord::thread
  std::uint32_t event_count;  ///< events that follow; a zero event among them is a hook that was interrupted for good
  std::uint64_t sequence;     ///< from 0
  std::uint64_t ticks;        ///< full clock at the block's start
};
static_assert(sizeof(BlockRecord) == 24);

/// PACK := PackedHeader stream*kPackedStreams zero*   (zeros: see kMaxPackedEvents)
/// Blocks of one thread that follow each other, with the upper 24 bits of their clock in common, as one block whose
/// events are written small. Of each stream `raw` bytes make `stored` ones: a zstd frame, or, where both are equal,
/// the bytes as they are.
enum PackedStream : std::uint32_t {
  kPackedCodes,     ///< a byte an event: PackedCode
  kPackedSteps,     ///< a byte an event: ticks since the last event with a time, or PackedStep
  kPackedWide,      ///< 2 bytes for each kStepWide: the ticks less kStepWide
  kPackedLong,      ///< 5 bytes for each kStepLong: the ticks modulo 2^40
  kPackedWords,     ///< 3 bytes for each kCodeWord: the lower 24 bits of the event
  kPackedPayloads,  ///< 5 bytes for each of these that has no time: its upper 40 bits
  kPackedIds,       ///< 3 bytes for each code from 1: the function id that it stands for
  kPackedStreams
};
enum PackedCode : std::uint8_t {
  kCodeExit = 0,    ///< the exit of the last call that was entered and not left
  kCodeWord = 255,  ///< anything else; codes between these are enters, by kPackedIds
};
enum PackedStep : std::uint8_t { kStepWide = 254, kStepLong = 255 };
inline constexpr std::size_t kPackedWidth[kPackedStreams] = {1, 1, 2, 5, 3, 5, 3};  ///< bytes of an element
inline constexpr std::uint32_t kPackedStack = 65535;        ///< open calls that codes know of; more are not entered
inline constexpr std::uint32_t kMaxPackedEvents = 1 << 20;  ///< in one chunk
inline constexpr std::uint32_t kMaxPackedDensity = 32;      ///< events for each byte of payload; zeros fill it up

struct PackedHeader {
  std::uint32_t process;
  std::uint32_t thread;       ///< ThreadRecord::thread
  std::uint64_t sequence;     ///< of the first block
  std::uint64_t ticks;        ///< full clock at its start
  std::uint64_t first_ticks;  ///< of the first event that has a time and is no kPad; `ticks` if none has
  std::uint64_t last_ticks;   ///< of the last one
  std::uint32_t blocks;       ///< the next block's sequence is `sequence` + `blocks`
  std::uint32_t event_count;
  std::uint32_t enters;     ///< events without the exit bit
  std::uint32_t notes;      ///< bit n: there is a note of kind n; 0: a mark about stacks; 31: other kinds
  std::uint32_t stored[7];  ///< bytes of each stream in the file
  std::uint32_t raw[7];     ///< and decoded
};
static_assert(sizeof(PackedHeader) == 112 && kPackedStreams == 7);

/// INLN. A function that the compiler made part of another one, as debug information tells it; nothing here was
/// measured. Of one function the records follow each other, parents before children.
struct InlinedRecord {
  std::uint32_t function;   ///< FunctionRecord::id of the function that it is part of
  std::uint32_t depth;      ///< 1: inlined into the function itself; n + 1: into the last record of depth n before it
  std::uint32_t copies;     ///< places where it was inlined so
  std::uint32_t line;       ///< 1-based line of its definition; 0 when not known
  std::uint32_t call_line;  ///< 1-based line of the first of these places; 0 when not known
  std::uint32_t reserved;   ///< 0
  StringRef name;           ///< demangled where debug information has the linker's name, else without scope
  StringRef file;           ///< source of its definition; empty when not known
  StringRef call_file;      ///< source of the first of these places; empty when not known
};
static_assert(sizeof(InlinedRecord) == 48 && offsetof(InlinedRecord, name) == 24);

/// SRCF. The text of one source file, as it was when the trace was resolved.
struct SourceRecord {
  StringRef path;
  StringRef text;
};
static_assert(sizeof(SourceRecord) == 16);

/// STSR. How thread states were recorded: one record.
struct StateSourceRecord {
  std::uint32_t backend;             ///< StateBackend
  std::uint32_t flags;               ///< StatesFlag bits
  std::uint32_t clock_error_ns;      ///< times of states may differ by so much from those of events
  std::uint32_t cpus;                ///< 1 + the highest CPU number that was watched
  std::uint64_t begin_ticks;         ///< states are known from here
  std::uint64_t end_ticks;           ///< to here
  std::uint64_t lost_events;         ///< never recorded; where, is in STEV as a gap
  std::uint64_t overwritten_events;  ///< recycled because memory was full, at the begin
  std::uint64_t page_faults;         ///< of all processes of the run; see kStatesFaults
  std::uint64_t migrations;          ///< of their threads, from one CPU to another; see kStatesFaults
  StringRef note;                    ///< why not a better backend, and what would be needed for it; may be empty
};
static_assert(sizeof(StateSourceRecord) == 72 && offsetof(StateSourceRecord, begin_ticks) == 16);

enum class StateBackend : std::uint32_t { kNone = 0, kPerf = 1, kFtrace = 2 };

enum StatesFlag : std::uint32_t {
  kStatesWakes = 1,        ///< who woke whom is recorded, so being woken and being blocked are told apart
  kStatesOthers = 2,       ///< who took a CPU is recorded, other processes' threads too
  kStatesSyscalls = 4,     ///< system calls are recorded
  kStatesFaults = 8,       ///< page_faults and migrations were counted
  kStatesCpus = 16,        ///< what CPUs did is asked for (karst run --cpus); with kStatesOthers, all of it
  kStatesOwnWakes = 32,    ///< whom the program's threads woke is recorded, also where kStatesWakes does not hold
  kStatesFaultTimes = 64,  ///< when threads had page faults is recorded (kStateFaults)
};

/// SMSR. How code was sampled: one record.
struct SampleSourceRecord {
  std::uint64_t period_ns;       ///< CPU time of a thread that one sample stands for
  std::uint64_t begin_ticks;     ///< samples were taken from here
  std::uint64_t end_ticks;       ///< to here
  std::uint64_t lost;            ///< samples that were not recorded
  std::uint64_t unread;          ///< samples whose stacks could not be read
  std::uint32_t flags;           ///< SampleSourceFlag bits
  std::uint32_t waits_left_out;  ///< times that a thread left its CPU that are not in SMWT, as there were too many; at
                                 ///< most 2^32 - 1
  StringRef note;                ///< what would be needed for more; may be empty
};
static_assert(sizeof(SampleSourceRecord) == 56);

enum SampleSourceFlag : std::uint32_t {
  kSamplesKernel = 1,  ///< time in the kernel was sampled, too
  kSamplesWaits = 2,   ///< so were threads as they left their CPUs (SMWT)
};

/// SMFN. Code that samples were in: a function, or a piece of one that has a frame of its own.
struct SampledFunctionRecord {
  std::uint64_t address;  ///< where it begins, in the file of its module; 0 with an empty module: code of no file
  std::uint32_t size;     ///< bytes
  std::uint32_t line;     ///< 0: not known
  StringRef module;       ///< path
  StringRef name;
  StringRef file;  ///< of its source; empty: not known
};
static_assert(sizeof(SampledFunctionRecord) == 40);

/// SMST. A stack of calls as samples have seen it, as a tree: each record is the innermost frame of one.
struct SampledStackRecord {
  std::uint32_t caller;    ///< 1 + a record before this one; 0: nobody called it, or that is not known
  std::uint32_t function;  ///< place in SMFN
};
static_assert(sizeof(SampledStackRecord) == 8);

/// SMPL. What a thread did at one moment, in order of time.
/// SMWT. The same of moments at which a thread left its CPU, to wait or for others. Where they were too many some are
/// left out (SampleSourceRecord::waits_left_out).
struct SampleRecord {
  std::uint64_t ticks;
  std::uint32_t tid;
  std::uint32_t pid;
  std::uint32_t stack;  ///< 1 + place in SMST; 0: not known
  std::uint16_t cpu;
  std::uint16_t flags;  ///< SampleFlag bits
};
static_assert(sizeof(SampleRecord) == 24 && offsetof(SampleRecord, stack) == 16);

enum SampleFlag : std::uint16_t {
  kSampleCut = 1,       ///< outer frames of its stack are missing
  kSampleInKernel = 2,  ///< the thread was in the kernel, called by the innermost frame
};

/// TASK. A thread that STEV names, of the run or not.
struct TaskRecord {
  std::uint32_t tid;
  std::uint32_t pid;    ///< 0: not known
  std::uint32_t flags;  ///< TaskFlag bits
  std::uint32_t reserved;
  StringRef name;  ///< the latest known
};
static_assert(sizeof(TaskRecord) == 24);

enum TaskFlag : std::uint32_t { kTaskOfRun = 1, kTaskTracer = 2 };

/// STEV. What happened to threads, in order of time.
struct StateRecord {
  std::uint64_t ticks;
  std::uint32_t tid;
  std::uint32_t other;
  std::uint32_t value;
  std::uint16_t cpu;
  std::uint8_t kind;  ///< StateKind
  std::uint8_t reserved;
};
static_assert(sizeof(StateRecord) == 24 && offsetof(StateRecord, kind) == 22);

/// In tid and other: 0 is the idle thread of a CPU, this is a thread that is not known.
inline constexpr std::uint32_t kUnknownTid = 0xffffffffU;

enum StateKind : std::uint8_t {
  kStateLeaveCpu = 1,   ///< `tid` left `cpu` to `other`; value: the kernel's letter of what it waits in, LeaveFlag bits
  kStateWaking = 2,     ///< `other` woke `tid`; value: WakingFlag bits
  kStateNewThread = 3,  ///< `other` made `tid`; value 1: in its own process
  kStateExit = 4,       ///< `tid` ended
  kStateSyscallEnter = 5,  ///< value: number of the system call
  kStateSyscallExit = 6,
  kStateAt = 7,           ///< begin of what is kept: what `tid` has been doing since before, see StateAtBits
  kStateLostBegin = 8,    ///< records of `cpu` are missing from here on
  kStateLostEnd = 9,      ///< to here; value: how many
  kStateWakesBegin = 10,  ///< from here on kStatesWakes and kStatesOthers hold; without it, from the begin
  kStateFaults = 11,      ///< `tid` has had `value` page faults in user code since the last such record, or its begin
};

enum WakingFlag : std::uint32_t {
  kWakingByInterrupt = 1,  ///< an interrupt woke it, while `other` ran
  kWakingRestated = 2,     ///< at the begin of what is kept, of before that: `cpu` is not the waker's
};

/// In the value of kStateAt, whose `other` is the thread that woke it or took its CPU.
enum StateAtBits : std::uint32_t {
  kStateAtState = 15,         ///< mask: 0 not known, 1 runs, 2 preempted, 3 woken, 4 blocked, 5 gone
  kStateAtInterrupt = 16,     ///< an interrupt woke it
  kStateAtEarly = 32,         ///< blocked, but `other` woke it just before the switch
  kStateAtLetterShift = 8,    ///< bits 8 to 15: the kernel's letter of what it waits in
  kStateAtSyscallShift = 16,  ///< bits 16 to 31: 1 + the system call that it is in; 0: none or not known
};

/// In a switch's value, above the letter (0: not known).
enum LeaveFlag : std::uint32_t {
  kLeaveRunnable = 256,  ///< it could have run on
};

/// UNTR. A program that a process of the trace started and that could not be traced.
struct UntracedRecord {
  StringRef program;  ///< path
  StringRef reason;   ///< what to put behind the path, and what to do about it
};
static_assert(sizeof(UntracedRecord) == 16);

/// SERI. What was read of the system beside the calls, again and again.
struct SeriesRecord {
  std::uint32_t series;  ///< dense index in this file, from 0
  std::uint32_t kind;    ///< UsageKind of format/usage_kinds.h
  std::uint32_t of;      ///< UsageOf
  std::uint32_t pid;     ///< 0: of no process
  std::uint32_t tid;     ///< 0: of no thread
  std::uint32_t flags;   ///< SeriesFlag bits
};
static_assert(sizeof(SeriesRecord) == 24);

enum SeriesFlag : std::uint32_t {
  kSeriesThinned = 1,  ///< older points stand for several: of levels the greatest, of totals the last
};

/// SRPT. A value of a series when it was read, or where it last was the same. Those of a series follow each other in
/// order of time.
struct PointRecord {
  std::uint64_t ticks;
  std::int64_t value;
  std::uint32_t series;
  std::uint32_t reserved;  ///< 0
};
static_assert(sizeof(PointRecord) == 24 && offsetof(PointRecord, series) == 16);

/// ENDT.
struct EndRecord {
  std::uint64_t chunks;  ///< chunks before this one
  std::uint64_t events;  ///< events in all BLKS and PACK chunks
};
static_assert(sizeof(EndRecord) == 16);

}  // namespace karst::format
