// SPDX-License-Identifier: MIT
// What karst says of code without sleds that it has patched, or was asked to patch.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "collect/launch/plain_programs.h"
#include "reader/model.h"

namespace karst::cli {

/// In a line for each of the first modules. `when`: "as it was loaded". `few_calls`: a trace has few for the time that
/// was spent, so the libraries are named where the work may be. False: there is none to tell of.
bool say_what_was_patched(const std::vector<collect::PlainPrograms::Module>& modules, const std::string& when,
                          bool few_calls = false);

/// Of modules in which functions were left alone, as a trace or a process has them: how many, and where they are
/// listed.
std::vector<std::string> left_alone(const std::vector<reader::Module>& modules);

/// Of --fibers, also of karst attach.
inline constexpr const char* kFibersByStack = "stack";
inline constexpr const char* kNoFibers = "none";
/// Why stacks have lanes without being asked for: what patch::stack_switcher() says. Nothing if that is empty.
void say_why_fibers(const std::string& why);

/// Which of the probes that --probes means are recorded; of those that mean none, which there are.
void say_which_probes(const std::vector<patch::ProbeChoice>& choices,
                      const std::vector<collect::PlainPrograms::Module>& modules);

/// Of programs with an allocator of their own whose calls are not seen: why.
void say_unseen_allocators(const std::vector<collect::PlainPrograms::Module>& modules);

/// Of each --library that meant no library, or no function: what was there, and what is near. `loaded`: libraries
/// without sleds; `built`: those that were built for tracing. Paths.
void say_what_was_not_named(const std::vector<choice::LibraryChoice>& libraries,
                            const std::vector<collect::PlainPrograms::Module>& patched,
                            const std::set<std::string>& loaded, const std::set<std::string>& built);

}  // namespace karst::cli
