// Programs and libraries without sleds: which of them are patched, and their tables, found once for each file.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/descriptor.h"
#include "collect/launch/session.h"
#include "patch/find.h"
#include "reader/model.h"

namespace karst::collect {

struct PlainChoice {
  bool programs = false;               ///< patch programs without sleds
  std::vector<std::string> libraries;  ///< patterns (as of a shell) of libraries' names to patch, too: libssl*
  std::uint32_t min_instructions = patch::kPlainMinInstructions;

  /// For KARST_OPTIONS: patch=...; empty: nothing is patched.
  std::string option() const;
};

class PlainPrograms {
 public:
  explicit PlainPrograms(PlainChoice choice) : choice_(std::move(choice)) {}

  /// Answers a process that asks for the table of a module (HelloKind::kPatches).
  void answer(Arrival asker);
  /// Finds the tables of what the process has loaded, so that it is not kept waiting when it asks. `uid`: its user.
  void prepare(pid_t pid, uid_t uid);

  /// What was patched of each module, and why the rest was not.
  struct Module {
    std::string path;
    std::string problem;  ///< why nothing of it can be patched; empty: something can
    std::uint64_t functions = 0;
    std::array<std::uint64_t, patch::kLeftOutCount> counts{};  ///< by patch::LeftOut
  };
  const std::vector<Module>& modules() const { return modules_; }

 private:
  using FileKey = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;

  bool is_wanted(const std::string& path, bool is_program) const;
  /// Null: nothing of it is patched.
  const Descriptor* table_of(int file, const std::string& path, bool is_program, uid_t uid);
  Descriptor make(int file, const std::string& path, uid_t uid);

  PlainChoice choice_;
  std::map<FileKey, Descriptor> tables_;  // none: nothing can be patched
  std::vector<Module> modules_;
};

}  // namespace karst::collect
