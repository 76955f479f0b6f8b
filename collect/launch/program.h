// SPDX-License-Identifier: MIT
// The program that `karst run` is asked to run: found as execvp finds it, and looked at before it is started.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/held_process.h"
#include "base/result.h"
#include "collect/launch/dead_sleds.h"
#include "sandbox/credentials.h"

namespace karst::collect {

inline constexpr const char* kWhyOtherLoader =
    "has another dynamic linker than glibc's, as that of musl: the tracing runtime cannot be loaded into it";
inline constexpr const char* kWhyOldLoader =
    "is loaded by a glibc that is older than 2.26: the tracing runtime cannot be loaded into it";

struct Program {
  std::filesystem::path path;  ///< the file to execute
  std::filesystem::path file;  ///< the program's own: another one if `path` is a dynamic linker that is told to load it
  bool executable = true;      ///< false: there is such a file, but it may not be executed (status 126)
  bool has_sleds = false;      ///< built with karst-gcc or karst-g++, with something to trace in it
  DeadSleds dead_sleds;        ///< where it has sleds
  bool has_plain_part = false;        ///< and functions of objects that were not
  bool is_static = false;             ///< no loader brings libraries into it, and libkarst is not inside
  std::string interpreter;            ///< of a script: the program behind #!
  bool has_notes = false;             ///< it says notes of its own (karst/karst.h)
  bool has_coroutines = false;        ///< C++20's, as its symbols say
  const char* why_foreign = nullptr;  ///< null, or why its dynamic linker (or its script's) cannot load the runtime
  bool has_old_glibc = false;         ///< the runtime comes with format::kOldGlibcLibrary
  bool has_libasan = false;           ///< gcc's AddressSanitizer, which wants to be the first library
  std::string stack_switcher;         ///< why it is known to switch stacks: "is linked with libco.so"; empty: it is not

  bool takes_no_runtime() const { return is_static || why_foreign != nullptr; }
};

/// Looks `command[0]` up, in PATH when it has no slash. None when there is no such file. The other words matter where
/// it is a dynamic linker (`ld-linux-x86-64.so.2 --library-path lib ./app`).
std::optional<Program> find_program(const std::vector<std::string>& command);

/// The file of the program that a process runs, as the kernel has it; if that is a dynamic linker, of what it was told
/// to load. Empty: it cannot be told.
std::string program_of_process(const HeldProcess& process);

/// Why this program cannot be traced at all, with what to do: static, setuid or with file capabilities, of another
/// architecture. Nothing if it can; whether it has sleds is another question, as its libraries or its children may.
/// It is run by a process with the rights `as`. `may_be_static`: it is no problem that a program is static.
Status check_traceable(const Program& program, const sandbox::Credentials& as, bool may_be_static = false);

}  // namespace karst::collect
