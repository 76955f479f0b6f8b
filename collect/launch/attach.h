// SPDX-License-Identifier: MIT
// Finding a traced process from outside, and its arena.
//
// A process has its arena as a descriptor (/proc/PID/fd, a link to "/memfd:karst-arena (deleted)"). `karst run` holds
// those of the programs it runs, and a forked child has its parent's until it makes its own: whose an arena is says
// its header. Nothing of this stops the process or is noticed by it; the kernel says who may (the same user, if the
// process is dumpable, and root).
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/held_process.h"
#include "base/result.h"
#include "collect/arena/view.h"
#include "collect/launch/plain_process.h"
#include "symbols/resolve.h"

namespace karst::collect {

/// A process as /proc tells of it.
struct ProcessFacts {
  pid_t pid = 0;
  uid_t uid = 0;
  /// As in /proc/PID/stat: T stopped, t traced by a debugger, Z a zombie; of another thread if the first one has ended.
  char state = '?';
  std::string name;  ///< of its executable's file; else comm
  std::string comm;  ///< as the kernel knows it
  std::uint32_t threads = 0;
};

/// Error: there is no such process.
Result<ProcessFacts> process_facts(pid_t pid);
Result<ProcessFacts> process_facts(const HeldProcess& process);
/// There is no such process any more, but for its parent's waiting for it.
bool has_ended(pid_t pid);
/// The number by which the process knows itself; another one in a container. 0: it is gone.
std::uint32_t own_number(pid_t pid);
std::uint32_t own_number(const HeldProcess& process);
/// "nobody", or the number.
std::string user_name(uid_t uid);

struct Attached {
  HeldProcess held;
  ProcessFacts process;
  ArenaView arena;
};

/// How names of its functions are looked up: with its user's rights.
symbols::ResolveOptions resolve_options(const Attached& target);

/// Opens the arena of a process. Error: why that cannot be, in words for the user; `is_refused`, if not null, becomes
/// true when it has one that cannot be read safely.
Result<Attached> attach(const HeldProcess& process, bool* is_refused = nullptr);
Result<Attached> attach(pid_t pid, bool* is_refused = nullptr);

/// What attach_or_load() has done.
struct Brought {
  bool tracing = false;                ///< the process was not traced before
  std::optional<PatchedCode> patched;  ///< of a program without sleds
};

/// As attach(). A process without libkarst gets it from the file `library` first (collect/inject/load.h). Then what it
/// was built with karst-gcc or karst-g++ from is traced from here on, in all its threads; of a program without sleds
/// what `plain` chooses, if it chooses something.
Result<Attached> attach_or_load(const HeldProcess& process, const std::string& library, const PlainAttach& plain,
                                PlainPrograms& programs, Brought& brought);

/// All programs that run as the caller's user, or any for root, traced or not, in order of pid; not this one.
std::vector<ProcessFacts> find_processes();

/// All traced processes that the caller may look into, in order of pid. `refused`, if not null, gets a message for each
/// process with an arena that cannot be read safely.
std::vector<Attached> find_traced(std::vector<Error>* refused = nullptr);

/// Those whose executable's file or comm is `name`.
std::vector<Attached> find_traced(const std::string& name);

/// Positions of the names that `typed` fits, best first: its letters occur in the name in this order, whatever their
/// case. Better are those with the letters side by side, at the begin of the name or of a word in it; then shorter
/// ones; then earlier ones. Everything fits nothing typed.
std::vector<std::size_t> fuzzy_matches(const std::vector<std::string>& names, const std::string& typed);

}  // namespace karst::collect
