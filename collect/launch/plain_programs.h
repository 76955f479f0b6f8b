// SPDX-License-Identifier: MIT
// Programs and libraries without sleds: which of them are patched, and their tables, found once for each file.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/descriptor.h"
#include "choice/library_choice.h"
#include "collect/launch/session.h"
#include "format/option_table.h"
#include "patch/find.h"
#include "reader/model.h"
#include "symbols/resolve.h"

namespace karst::collect {

struct PlainChoice {
  bool programs = false;                         ///< patch programs' functions without sleds
  bool beside_sleds_alone = false;               ///< of programs that have some: no other program
  std::vector<choice::LibraryChoice> libraries;  ///< to patch, too
  std::uint32_t min_instructions = patch::kPlainMinInstructions;
  std::vector<patch::ProbeChoice> probes;  ///< of programs and libraries, with sleds or without
  /// Functions before which a library of ours stands, also where the program, with sleds or without, has them in
  /// itself.
  std::vector<std::string> detours;

  /// Something of a process is patched.
  bool any() const { return programs || !libraries.empty() || !probes.empty() || !detours.empty(); }
  /// Has the runtime ask for tables of it.
  void ask_by(format::RuntimeOptions& options) const;
};

class PlainPrograms {
 public:
  explicit PlainPrograms(PlainChoice choice, symbols::ResolveOptions resolve = {})
      : choice_(std::move(choice)), resolve_(std::move(resolve)) {}

  /// Answers a process that asks for the table of a module (HelloKind::kPatches).
  void answer(Arrival asker);
  /// Finds the tables of what the process has loaded, so that it is not kept waiting when it asks. `uid`: its user.
  void prepare(const HeldProcess& process, uid_t uid);

  /// What was patched of each module, and why the rest was not.
  struct Module {
    std::string path;
    std::string problem;                   ///< why nothing of it can be patched; empty: something can
    std::vector<std::string> named;        ///< globs of the functions that were asked for; none: all
    std::string stack_switcher{};          ///< as of patch::ModulePlaces
    std::vector<std::string> libraries{};  ///< names of those that it is linked with, if none were chosen
    std::vector<std::string> near;         ///< no function is named so: names like that
    std::uint64_t functions = 0;           ///< that were looked at: of all, or of those that were named
    std::array<std::uint64_t, patch::kLeftOutCount> counts{};  ///< by patch::LeftOut
    std::vector<patch::ProbeOutcome> probes;                   ///< that were wanted
    std::vector<std::string> other_probes;                     ///< names, where it has none of them
    std::vector<patch::DetourOutcome> detours;                 ///< that were wanted, and are there
  };
  const std::vector<Module>& modules() const { return modules_; }
  /// Paths of the libraries without sleds that processes had as they asked, where libraries were chosen.
  const std::set<std::string>& loaded() const { return loaded_; }

 private:
  /// What of a file is looked at.
  struct Parts {
    bool functions = false;
    bool detours = false;
    auto operator<=>(const Parts&) const = default;
  };
  using FileKey = std::tuple<Parts, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;

  /// Whether functions of the module are patched. What is wanted of every module are probes.
  bool is_wanted(const std::string& path, bool is_program) const;
  Result<patch::ModulePlaces> places_of(int file, Module& module, Parts parts, uid_t uid);
  /// Probes are always looked at. Null: nothing of it is patched.
  const Descriptor* table_of(int file, const std::string& path, Parts parts, uid_t uid);
  Descriptor make(int file, const std::string& path, Parts parts, uid_t uid);

  PlainChoice choice_;
  symbols::ResolveOptions resolve_;
  patch::TableCache cache_ = patch::TableCache::of_user();
  std::map<FileKey, Descriptor> tables_;  // none: nothing can be patched
  std::vector<Module> modules_;
  std::set<std::string> loaded_;
};

}  // namespace karst::collect
