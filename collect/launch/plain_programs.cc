// SPDX-License-Identifier: MIT
#include "collect/launch/plain_programs.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "base/sealed_memory.h"
#include "collect/inject/memory.h"
#include "collect/launch/foreign_file.h"
#include "sandbox/credentials.h"

namespace karst::collect {

using format::AnswerOutcome;

namespace {

/// What karst sees at the path is the very file that a process has.
bool is_file_at(const std::string& path, int file) {
  struct stat there {};
  struct stat ours {};
  return stat(path.c_str(), &there) == 0 && fstat(file, &ours) == 0 && there.st_dev == ours.st_dev &&
         there.st_ino == ours.st_ino;
}

}  // namespace

void PlainChoice::ask_by(format::RuntimeOptions& options) const {
  options.patch = !libraries.empty() ? 2 : programs ? 1 : 0;
  options.probes = !probes.empty();
  options.detours = !detours.empty();
}

bool PlainPrograms::is_wanted(const std::string& path, bool is_program) const {
  if (is_program) return choice_.programs && !choice::is_below_runtime(path);
  return choice::named_of(choice_.libraries, path).any();
}

const Descriptor* PlainPrograms::table_of(int file, const std::string& path, Parts parts, uid_t uid) {
  struct stat status {};
  const bool any = parts.functions || parts.detours || !choice_.probes.empty();
  if (!any || file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  const FileKey key{parts, status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  auto known = tables_.find(key);
  if (known == tables_.end()) known = tables_.emplace(key, make(file, path, parts, uid)).first;
  return known->second ? &known->second : nullptr;
}

void PlainPrograms::answer(Arrival asker) {
  const int file = asker.arena.get();
  std::error_code error;
  const std::string path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), error);
  constexpr std::size_t kMostNoted = 1000;
  const bool is_program = (asker.first_function & format::kPatchesOfProgram) != 0;
  const bool has_sleds = (asker.first_function & format::kPatchesBesideSleds) != 0;
  const bool functions = (asker.first_function & format::kPatchesOfFunctions) != 0 && is_wanted(path, is_program) &&
                         (has_sleds || !is_program || !choice_.beside_sleds_alone);
  if (!is_program && !has_sleds && loaded_.size() < kMostNoted) loaded_.insert(path);
  const Descriptor* table = table_of(file, path, {functions, is_program && !choice_.detours.empty()}, asker.uid);
  if (table == nullptr) return asker.answer(AnswerOutcome::kNothing, {});
  asker.answer(AnswerOutcome::kGiven, *table);
}

void PlainPrograms::prepare(const HeldProcess& process, uid_t uid) {
  const auto look = [&](const std::string& path, const std::string& opened, bool is_program) {
    const Parts parts{is_wanted(path, is_program), is_program && !choice_.detours.empty()};
    if (parts.functions || parts.detours || !choice_.probes.empty())
      table_of(open_regular_file(opened).get(), path, parts, uid);
  };
  std::error_code error;
  const std::string program = std::filesystem::read_symlink(process.path("exe"), error);
  look(program, process.path("exe"), true);
  for (const Mapping& m : mappings_of(process))
    if (m.is_code() && m.path.starts_with('/') && m.path != program) look(m.path, process.path("root" + m.path), false);
}

Result<patch::ModulePlaces> PlainPrograms::places_of(int file, Module& module, Parts parts, uid_t uid) {
  // The sandbox reads a descriptor alone: no group is needed for that.
  constexpr gid_t kNobody = 65534;
  const auto as = sandbox::Credentials::of_owner(uid, kNobody);
  patch::WantedPlaces places{parts.functions, {choice_.min_instructions}, nullptr, choice_.probes, {}};
  if (parts.detours) places.detours = choice_.detours;
  const choice::NamedOfLibrary named = choice::named_of(choice_.libraries, module.path);
  if (!parts.functions || named.whole || named.globs.empty()) return patch::find_in_file(file, places, as, cache_);
  module.named = named.globs;
  auto globs = choice::GlobSet::compile(named.globs);
  if (!globs) return globs.error();
  patch::WantedNames wanted{&*globs, named.globs, {}};
  // A separate debug file has names that a stripped library lacks.
  if (is_file_at(module.path, file)) {
    if (const auto table = resolve_.with(as).table(binary::ModuleFile(module.path)))
      wanted.addresses = patch::named_in(**table, *globs);
  }
  places.options = {};
  places.named = &wanted;
  return patch::find_in_file(file, places, as, cache_);
}

Descriptor PlainPrograms::make(int file, const std::string& path, Parts parts, uid_t uid) {
  modules_.push_back({});
  Module& module = modules_.back();
  module.path = path;
  auto found = places_of(file, module, parts, uid);
  if (!found) {
    module.problem = found.error().message;
    return {};
  }
  module.counts = found->counts();
  module.functions = found->functions.size() - module.counts[static_cast<std::size_t>(patch::LeftOut::kHasSleds)] -
                     module.counts[static_cast<std::size_t>(patch::LeftOut::kUntraced)];
  module.stack_switcher = std::move(found->stack_switcher);
  if (choice_.libraries.empty()) module.libraries = std::move(found->libraries);
  module.near = std::move(found->near);
  module.probes = std::move(found->probes);
  module.other_probes = std::move(found->other_probes);
  module.detours = std::move(found->detours);
  if (found->table.empty()) return {};
  Descriptor table = sealed_memory("karst-patches", found->table);
  if (!table) module.problem = "there is no memory for its table";
  return table;
}

}  // namespace karst::collect
