// The program that `karst run` is asked to run: found as execvp finds it, and looked at before it is started.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "symbols/credentials.h"

namespace karst::collect {

struct Program {
  std::filesystem::path path;   ///< the file to execute
  bool executable = true;       ///< false: there is such a file, but it may not be executed (status 126)
  bool has_sleds = false;       ///< built with karst-gcc or karst-g++
  bool is_static = false;       ///< no loader brings libraries into it, and libkarst is not inside
  std::string interpreter;      ///< of a script: the program behind #!
  bool has_notes = false;       ///< it says notes of its own (karst/karst.h)
  bool has_coroutines = false;  ///< C++20's, as its symbols say
  bool has_libasan = false;     ///< gcc's AddressSanitizer, which wants to be the first library
  std::string stack_switcher;   ///< why it is known to switch stacks: "is linked with libco.so"; empty: it is not
};

/// Looks `name` up, in PATH when it has no slash. None when there is no such file.
std::optional<Program> find_program(const std::string& name);

/// Why this program cannot be traced at all, with what to do: static, setuid or with file capabilities, of another
/// architecture. Nothing if it can; whether it has sleds is another question, as its libraries or its children may.
/// It is run by a process with the rights `as`. `may_be_static`: it is no problem that a program is static.
Status check_traceable(const Program& program, const symbols::Credentials& as, bool may_be_static = false);

}  // namespace karst::collect
