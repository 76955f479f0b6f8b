// What a traced process and `karst run` say to each other: one message each way over a SOCK_SEQPACKET Unix socket with
// an abstract name, given to the process in KARST_OPTIONS (session=NAME). Then the process closes its end: no
// descriptor of the session stays in it.
//
//   process -> karst   Hello, with the arena's memfd as SCM_RIGHTS when a new arena is announced
//   karst -> process   Go, when the functions to leave out are cleared in the arena
//
// A process speaks up when it starts (with an arena, or to say that it has nothing to trace), when the first module
// with sleds arrives in one that had nothing to trace (HelloKind::kStart again, now with an arena), when more modules
// arrive (kArrived: the session chooses among the new functions), and, being forked, when it has an arena of its own
// (kForked). A forked child has its parent's choice of functions and does not wait for Go. Each program that a process
// is about to start is announced (kStarts), as one that cannot load the runtime says nothing itself.
//
// karst takes messages from its own user alone (SO_PEERCRED) and gives up nothing by a peer that lies.
#pragma once
#include <cstdint>

namespace karst::format {

inline constexpr std::uint32_t kSessionMagic = 0x5453524B;  // "KRST"
inline constexpr std::uint32_t kSessionVersion = 2;

enum class HelloKind : std::uint32_t {
  kStart = 0,    ///< a process image, or its first traced module
  kForked = 1,   ///< a child made by fork of a traced process: `origin` says of which, when and in which thread
  kArrived = 2,  ///< modules came to an arena that karst has: `first_function` and `function_count` say what is new
  kStarts = 3,   ///< the process is about to start the program whose file comes as SCM_RIGHTS; it does not wait
};

/// Where a forked child comes from: the nearest process before it that had an arena.
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
                                 ///< kStarts: 1: setuid bits have no effect (no_new_privs)
  std::uint32_t function_count;
  ForkOrigin origin;  ///< kForked
};
static_assert(sizeof(Hello) == 56);

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

}  // namespace karst::format
