// What a traced process and `karst run` say to each other when the process starts: one message each
// way over a SOCK_SEQPACKET Unix socket with an abstract name, given to the process in KARST_OPTIONS
// (session=NAME). Then the process closes its end: no descriptor of the session stays in it.
//
//   process -> karst   Hello, with the arena's memfd as SCM_RIGHTS when there is an arena
//   karst -> process   Go, when the functions to leave out are cleared in the arena
//
// karst takes messages from its own user alone (SO_PEERCRED) and gives up nothing by a peer that lies.
#pragma once
#include <cstdint>

namespace karst::format {

inline constexpr std::uint32_t kSessionMagic = 0x5453524B;  // "KRST"
inline constexpr std::uint32_t kSessionVersion = 1;

struct Hello {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t pid;
  std::uint32_t outcome;   ///< HelloOutcome
  std::uint32_t modules;   ///< modules with sleds
  std::uint32_t reserved;  ///< 0
};
static_assert(sizeof(Hello) == 24);

enum class HelloOutcome : std::uint32_t {
  kTracing = 0,    ///< the arena comes with this message
  kNoSleds = 1,    ///< nothing in this process is instrumented
  kImpossible = 2  ///< the runtime said why on stderr
};

struct Go {
  std::uint32_t magic;
  std::uint32_t version;
};
static_assert(sizeof(Go) == 8);

}  // namespace karst::format
