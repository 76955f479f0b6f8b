#include "collect/launch/plain_programs.h"

#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/sealed_memory.h"
#include "collect/inject/memory.h"
#include "collect/launch/foreign_file.h"
#include "symbols/credentials.h"

namespace karst::collect {

using format::AnswerOutcome;

namespace {

/// What the runtime itself stands on, or is.
bool is_below_us(std::string_view name) {
  constexpr std::string_view kNever[] = {"libc.so",   "libc-",      "ld-linux", "ld-",    "libkarst.so",
                                         "libkarst-", "libpthread", "libdl.so", "libdl-", "linux-vdso"};
  return std::any_of(std::begin(kNever), std::end(kNever),
                     [&](std::string_view never) { return name.starts_with(never); });
}

}  // namespace

std::string PlainChoice::option() const {
  if (!libraries.empty()) return "patch=all";
  return programs ? "patch=program" : "";
}

bool PlainPrograms::is_wanted(const std::string& path, bool is_program) const {
  const std::string name = std::filesystem::path(path).filename();
  if (is_below_us(name)) return false;
  if (is_program) return choice_.programs;
  return std::any_of(choice_.libraries.begin(), choice_.libraries.end(),
                     [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

const Descriptor* PlainPrograms::table_of(int file, const std::string& path, bool is_program, uid_t uid) {
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || !is_wanted(path, is_program)) return nullptr;
  const FileKey key{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  auto known = tables_.find(key);
  if (known == tables_.end()) known = tables_.emplace(key, make(file, path, uid)).first;
  return known->second ? &known->second : nullptr;
}

void PlainPrograms::answer(Arrival asker) {
  const int file = asker.arena.get();
  std::error_code error;
  const std::string path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), error);
  const Descriptor* table = table_of(file, path, asker.first_function != 0, asker.uid);
  if (table == nullptr) return asker.answer(AnswerOutcome::kNothing, {});
  asker.answer(AnswerOutcome::kGiven, *table);
}

void PlainPrograms::prepare(pid_t pid, uid_t uid) {
  const std::string process = "/proc/" + std::to_string(pid);
  const auto look = [&](const std::string& path, const std::string& opened, bool is_program) {
    if (!is_wanted(path, is_program)) return;
    table_of(open_regular_file(opened).get(), path, is_program, uid);
  };
  std::error_code error;
  const std::string program = std::filesystem::read_symlink(process + "/exe", error);
  look(program, process + "/exe", true);
  for (const Mapping& m : mappings_of(pid))
    if (m.rights.starts_with("r-x") && m.path.starts_with('/') && m.path != program)
      look(m.path, process + "/root" + m.path, false);
}

Descriptor PlainPrograms::make(int file, const std::string& path, uid_t uid) {
  modules_.push_back({});
  Module& module = modules_.back();
  module.path = path;
  // The sandbox reads a descriptor alone: no group is needed for that.
  constexpr gid_t kNobody = 65534;
  const auto as = symbols::Credentials::of_owner(uid, kNobody);
  const auto found = patch::find_in_file(file, {choice_.min_instructions}, as);
  if (!found) {
    module.problem = found.error().message;
    return {};
  }
  module.functions = found->functions.size();
  module.counts = found->counts();
  if (found->table.empty()) return {};
  Descriptor table = sealed_memory("karst-patches", found->table);
  if (!table) module.problem = "there is no memory for its table";
  return table;
}

}  // namespace karst::collect
