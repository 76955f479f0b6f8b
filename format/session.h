// SPDX-License-Identifier: MIT
// What a traced process and `karst run` say to each other: one message each way over a SOCK_SEQPACKET Unix socket with
// an abstract name, given to the process in KARST_OPTIONS (session=NAME:SECRET). Then the process closes its end: no
// descriptor of the session stays in it.
//
//   process -> karst   Hello, with the arena's memfd as SCM_RIGHTS when a new arena is announced
//   karst -> process   Go, when the functions to leave out are cleared in the arena
//
// A process that writes a snapshot, and `karst snapshot`, ask for what karst alone knows of a stretch of time:
//
//   asker -> karst     Hello (kAsks), naming the process by its arena, and the stretch
//   karst -> asker     Answer, with a sealed memfd as SCM_RIGHTS: a trace file whose chunks belong into the asker's
//
// A process that is to call handlers for functions (karst_handle) asks which functions match a pattern (kFinds): an
// Answer with a sealed memfd (format/handlers.h).
//
// A process whose program has no sleds asks for a table of places where it can be patched (kPatches), before it starts:
// an Answer with a sealed memfd.
//
// A process speaks up when it starts (with an arena, or to say that it has nothing to trace), when the first module
// with sleds arrives in one that had nothing to trace (HelloKind::kStart again, now with an arena), when more modules
// arrive (kArrived: the session chooses among the new functions), and, being forked, when it has an arena of its own
// (kForked). A forked child has its parent's choice of functions and does not wait for Go. Each program that a process
// is about to start is announced (kStarts), as one that cannot load the runtime says nothing itself.
//
// Everybody can read the name in /proc/net/unix, and bind it when karst is gone. So the process first asks the kernel
// who listens (SO_PEERCRED): root, or the user that it is itself, and the process whose number is in the name. karst
// takes messages that carry the secret alone. Only who may look into the process, or into karst, can read that.
// The log of thread states may name processes of others. So karst answers root and its own user alone.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::format {

inline constexpr std::uint32_t kSessionMagic = 0x5453524B;  // "KRST"
inline constexpr std::uint32_t kSessionVersion = 5;

/// Random; in KARST_OPTIONS as 32 hexadecimal digits. In no trace, no arena and no name.
struct SessionSecret {
  std::uint8_t bytes[16];
};

/// What is not a secret leaves zeros, which no session has.
constexpr SessionSecret parse_secret(const char* s) {
  SessionSecret secret{};
  for (std::size_t i = 0; i < 2 * sizeof secret.bytes; ++i) {
    const char c = s[i];
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(c >= 'a' && c <= 'f')) return {};
    const auto value = static_cast<unsigned>(digit ? c - '0' : c - 'a' + 10);
    secret.bytes[i / 2] = static_cast<std::uint8_t>(secret.bytes[i / 2] << 4 | value);
  }
  return s[2 * sizeof secret.bytes] == '\0' ? secret : SessionSecret{};
}

/// Takes the same time wherever the two differ.
constexpr bool is_same(const SessionSecret& a, const SessionSecret& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < sizeof a.bytes; ++i) difference |= static_cast<unsigned>(a.bytes[i] ^ b.bytes[i]);
  return difference == 0;
}

static_assert([] {
  constexpr SessionSecret kParsed = parse_secret("000102030405060708090a0b0c0d0eff");
  return kParsed.bytes[1] == 1 && kParsed.bytes[15] == 0xff && !is_same(kParsed, SessionSecret{}) &&
         is_same(parse_secret("000102030405060708090a0b0c0d0ef"), SessionSecret{});
}());

/// Who listens to a process, and what proves to it who speaks.
struct SessionKey {
  char name[108] = {};  ///< of an abstract socket; empty: nobody listens
  SessionSecret secret = {};
};

/// "NAME:SECRET". False: the name is too long; then `key` is as it was.
constexpr bool parse_session(const char* s, SessionKey& key) {
  SessionKey read;
  std::size_t n = 0;
  for (; s[n] != '\0' && s[n] != ':'; ++n) {
    if (n + 1 == sizeof read.name) return false;
    read.name[n] = s[n];
  }
  if (s[n] == ':') read.secret = parse_secret(s + n + 1);
  key = read;
  return true;
}

enum class HelloKind : std::uint32_t {
  kStart = 0,    ///< a process image, or its first traced module
  kForked = 1,   ///< a child made by fork of a traced process: `origin` says of which, when and in which thread
  kArrived = 2,  ///< modules came to an arena that karst has: `first_function` and `function_count` say what is new
  kStarts = 3,   ///< the process is about to start the program whose file comes as SCM_RIGHTS; it does not wait
  kAsks = 4,     ///< who asks wants an Answer about the process whose arena `origin` names
  kPatches = 5,  ///< the process wants an Answer with a table of patches (format/patch_table.h) for the module whose
                 ///< file comes as SCM_RIGHTS
  kFinds = 6,    ///< the process wants an Answer with its functions whose names match a pattern, of those that
                 ///< `first_function` and `function_count` say. The pattern follows in the message, without a NUL
};

/// Bits.
enum PatchesAsked : std::uint32_t {
  kPatchesOfProgram = 1,    ///< the module is the program
  kPatchesOfFunctions = 2,  ///< its functions are to be patched, too; else its probes alone
  kPatchesBesideSleds = 4,  ///< it has sleds, or functions that are instrumented
};

/// What a process knows of a program that it starts (runtime/process/exec.h).
enum class StartsHow : std::uint32_t {
  kAsUsual = 0,
  // The runtime is kept out of it, and why:
  kOtherLoader = 1,   ///< its dynamic linker is not glibc's
  kOldLoader = 2,     ///< its dynamic linker is of a glibc that is older than 2.26
  kOtherMachine = 3,  ///< its code is for another processor
  kOtherRoot = 4,     ///< where it is started, libkarst.so cannot be read
  kNoRoom = 5,        ///< its arguments and environment leave no room for ours
  kOwnShell = 6,      ///< libc's system() or popen() starts a shell in an environment from which we were taken
  kOtherUser = 7,     ///< as another user than the process began as, in an environment without us
};

/// Names by which a dynamic linker of glibc is known, with the zeros around them in a table of names.
inline constexpr char kAnyGlibc[] = "\0GLIBC_PRIVATE";
/// Since 2.26, which is the oldest that libkarst.so and its companions are loaded by.
inline constexpr char kLeastGlibc[] = "\0_dl_exception_create";
/// Since 2.34 all functions are in libc.so.6. Before it, libkarst-old-glibc.so brings the other libraries.
inline constexpr char kOneLibrary[] = "\0GLIBC_2.34";
inline constexpr char kOldGlibcLibrary[] = "libkarst-old-glibc.so.0";  ///< beside libkarst.so

/// Where a forked child comes from: the nearest process before it that had an arena. kAsks: which process is meant.
struct ForkOrigin {
  std::uint64_t start_ticks;  ///< ArenaHeader::start_ticks of its arena
  std::uint32_t pid;          ///< ArenaHeader::pid of its arena
  std::uint32_t tid;          ///< the thread that forked; 0: the child has none of its calls on its stack
  std::uint64_t ticks;        ///< when it forked; 0: not known (a fork by a raw system call)
};
static_assert(sizeof(ForkOrigin) == 24);

struct Hello {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t pid;
  std::uint32_t outcome;         ///< HelloOutcome
  std::uint32_t modules;         ///< modules with sleds
  std::uint32_t kind;            ///< HelloKind
  std::uint32_t first_function;  ///< kArrived: the new ids are first_function .. first_function + function_count - 1;
                                 ///< kStarts: 1: setuid bits have no effect (no_new_privs);
                                 ///< kAsks: moments in the answer are numbered from here;
                                 ///< kPatches: PatchesAsked
  std::uint32_t function_count;  ///< kStarts: StartsHow
  ForkOrigin origin;             ///< kForked, kAsks
  std::uint64_t from_ticks;      ///< kAsks: the stretch of time
  std::uint64_t to_ticks;
  SessionSecret secret;
};
static_assert(sizeof(Hello) == 88);

enum class HelloOutcome : std::uint32_t {
  kTracing = 0,    ///< the arena comes with this message
  kNoSleds = 1,    ///< nothing in this process is instrumented
  kImpossible = 2  ///< the runtime said why on stderr
};

struct Go {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t flags;     ///< GoFlag bits
  std::uint32_t reserved;  ///< 0
};
static_assert(sizeof(Go) == 16);

enum GoFlag : std::uint32_t {
  /// No function is left out of the modules that the functions asked about belong to, nor will one be that comes later.
  kGoKeepsAll = 1,
};

/// Of kAsks: the trace file in the memfd holds chunks STSR, TASK, STEV and MOMT, those of process 0.
struct Answer {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t outcome;   ///< AnswerOutcome
  std::uint32_t reserved;  ///< 0
};
static_assert(sizeof(Answer) == 16);

enum class AnswerOutcome : std::uint32_t {
  kGiven = 0,           ///< the memfd comes with this message
  kOtherUser = 1,       ///< the asker is neither root nor karst's user
  kUnknownProcess = 2,  ///< karst has no such arena
  kNothing = 4,         ///< kPatches: no function of the module is to be patched, or can be
  kImpossible = 3,      ///< karst had no memory or descriptor for it, or it would be more than kMostAnswer
  kBadPattern = 5,      ///< kFinds: it is no regular expression
};

inline constexpr std::uint64_t kMostAnswer = std::uint64_t{1} << 30;  ///< bytes of the memfd
/// How long an asker waits, in milliseconds: karst may be looking up names, or be stopped.
inline constexpr std::uint32_t kAnswerWithin = 2000;
inline constexpr std::uint32_t kAnswerWithinCrash = 1000;  ///< an asker that is about to end

/// Why a snapshot has no thread states although a session is named; texts for StateSourceRecord::note.
inline constexpr char kWhyEnded[] = "karst run, which recorded them, had ended when this was written";
inline constexpr char kWhySilent[] = "karst run, which records them, did not answer in time";
inline constexpr char kWhyOtherUser[] = "karst run tells them to root and its own user alone";
inline constexpr char kWhyNotGiven[] = "karst run records them, and could not hand them over";

}  // namespace karst::format
