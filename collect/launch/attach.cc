// SPDX-License-Identifier: MIT
#include "collect/launch/attach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/process_maps.h"
#include "base/process_status.h"
#include "choice/function_choice.h"
#include "collect/arena/writer.h"
#include "collect/inject/load.h"
#include "collect/inject/patch.h"
#include "collect/launch/choose_functions.h"
#include "collect/launch/foreign_file.h"

namespace karst::collect {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLink = "/memfd:karst-arena (deleted)";

std::string read_link(const std::string& path) {
  char target[4096];
  const ssize_t n = readlink(path.c_str(), target, sizeof target);
  return n > 0 ? std::string(target, static_cast<std::size_t>(n)) : std::string();
}

std::string described(const ProcessFacts& p) { return "process " + std::to_string(p.pid) + " (" + p.name + ")"; }

/// The process's own arena behind an open descriptor; none for somebody else's.
std::optional<Result<ArenaView>> own_arena(int descriptor, const HeldProcess& process) {
  auto view = ArenaView::of_descriptor(descriptor);
  if (view && view->pid() != own_number(process)) return std::nullopt;
  return view;
}

struct Found {
  std::optional<Result<ArenaView>> arena;
  int error = 0;        // errno of looking
  bool others = false;  // only arenas that are not its own
};

Found look_in_descriptors(const HeldProcess& process) {
  Found found;
  std::error_code error;
  fs::directory_iterator entries(process.path("fd"), error);
  if (error) return {std::nullopt, error.value(), false};
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    if (error) break;
    const std::string path = entries->path().string();
    if (read_link(path) != kLink) continue;
    const Descriptor fd = open_memfd(path, O_RDWR);
    if (!fd) {
      found.error = errno;
      continue;
    }
    found.arena = own_arena(fd.get(), process);
    if (found.arena) return found;
    found.others = true;
  }
  return found;
}

/// For a program that closed all descriptors that it did not know.
Found look_in_mappings(const HeldProcess& process) {
  Found found;
  for (const Mapping& m : read_maps(process.path("maps"))) {
    if (m.path != kLink) continue;
    const Descriptor fd = open_memfd(process.path(m.link()), O_RDWR);
    if (!fd) {
      found.error = errno;
      continue;
    }
    found.arena = own_arena(fd.get(), process);
    if (found.arena) return found;
    found.others = true;
  }
  return found;
}

/// A file that is mapped from its beginning on, shared and to be written to: it may be an arena's (file=PATH).
bool may_be_arena(const Mapping& m) {
  return m.rights == "rw-s" && m.offset == 0 && m.path.starts_with('/') && !m.path.starts_with("/memfd:") &&
         !m.path.starts_with("/dev/zero");
}

/// For a program whose arena lies in a file.
Found look_in_files(const HeldProcess& process) {
  Found found;
  for (const Mapping& file : read_maps(process.path("maps"))) {
    if (!may_be_arena(file)) continue;
    std::error_code error;
    std::vector<std::string> paths;
    for (fs::directory_iterator at(process.path("fd"), error), end; !error && at != end; at.increment(error))
      paths.push_back(at->path().string());
    paths.push_back(process.path(file.link()));
    for (const std::string& path : paths) {
      const Descriptor fd = open_arena_file(path, file.device_major, file.device_minor, file.inode);
      if (!fd) continue;
      found.arena = own_arena(fd.get(), process);
      // Other files that are shared are nobody's arena.
      if (found.arena && !*found.arena) found.arena.reset();
      if (found.arena) return found;
    }
  }
  return found;
}

bool has_runtime(const HeldProcess& process) {
  const auto maps = read_maps(process.path("maps"));
  return std::any_of(maps.begin(), maps.end(), [](const Mapping& m) { return m.is_runtime(); });
}

std::string why_not(const HeldProcess& process, const ProcessFacts& p, const Found& descriptors,
                    const Found& mappings) {
  const std::string who = described(p);
  if (p.state == 'Z') return who + " has ended and only waits for its parent to take note (a zombie)";
  if (geteuid() != 0 && p.uid != geteuid())
    return who + " belongs to user " + user_name(p.uid) + "; only that user and root may look into it";
  if (descriptors.error == EACCES || descriptors.error == EPERM)
    return who + " does not let its own user look into it (PR_SET_DUMPABLE, or it changed its user); root may";
  if (!process.is_there()) return who + " has ended";
  if (mappings.error == EPERM || mappings.error == EACCES)
    return who + " has closed the descriptor of its trace memory; only root can still find that";
  if (descriptors.others || mappings.others)
    return who +
           " has only the trace memory of others: it is karst itself, or was forked and has made no traced call yet";
  if (has_runtime(process))
    return who +
           " has libkarst loaded and traces nothing: no part of it was built with karst-g++, or tracing was not "
           "possible. 'karst attach' patches the functions of such a program";
  return who + fmt::format(
                   " is not traced by Karst; 'karst attach {}' traces it from then on, 'karst run' a program from its "
                   "start",
                   p.pid);
}

}  // namespace

Result<ProcessFacts> process_facts(pid_t pid) {
  const auto process = HeldProcess::open(pid);
  return process ? process_facts(*process) : process.error();
}

Result<ProcessFacts> process_facts(const HeldProcess& process) {
  ProcessFacts facts;
  facts.pid = process.number();
  const auto status = ProcessStatus::read(process.path("status"));
  facts.comm = status.field("Name");
  if (const auto state = status.field("State"); !state.empty()) facts.state = state.front();
  facts.uid = static_cast<uid_t>(status.number("Uid").value_or(facts.uid));
  facts.threads = static_cast<std::uint32_t>(status.number("Threads").value_or(facts.threads));
  if (status.empty()) return Error{"there is no process " + std::to_string(facts.pid)};
  std::string executable = read_link(process.path("exe"));
  constexpr std::string_view kDeleted = " (deleted)";
  if (executable.ends_with(kDeleted)) executable.resize(executable.size() - kDeleted.size());
  facts.name = executable.empty() ? facts.comm : executable.substr(executable.find_last_of('/') + 1);
  return facts;
}

bool has_ended(pid_t pid) {
  const auto facts = process_facts(pid);
  return !facts || facts->state == 'X' || facts->state == 'Z';
}

std::uint32_t own_number(pid_t pid) {
  const auto process = HeldProcess::open(pid);
  return process ? own_number(*process) : 0;
}

std::uint32_t own_number(const HeldProcess& process) {
  const auto status = ProcessStatus::read(process.path("status"));
  if (status.empty()) return 0;
  const auto numbers = status.numbers("NStgid");  // in each namespace, its own last
  return numbers.empty() ? static_cast<std::uint32_t>(process.number()) : static_cast<std::uint32_t>(numbers.back());
}

std::string user_name(uid_t uid) {
  char space[4096];
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, space, sizeof space, &found) == 0 && found != nullptr) return found->pw_name;
  return std::to_string(uid);
}

symbols::ResolveOptions resolve_options(const Attached& target) {
  symbols::ResolveOptions options;
  const auto& owner = target.arena.owner();
  options.as = sandbox::Credentials::of_process(target.held, owner ? owner->uid : 0, owner ? owner->gid : 0);
  return options;
}

Result<Attached> attach(pid_t pid, bool* is_refused) {
  const auto process = HeldProcess::open(pid);
  return process ? attach(*process, is_refused) : process.error();
}

Result<Attached> attach(const HeldProcess& process, bool* is_refused) {
  auto facts = process_facts(process);
  if (!facts) return facts.error();
  Found descriptors = look_in_descriptors(process);
  Found mappings;
  if (!descriptors.arena) mappings = look_in_mappings(process);
  Found files;
  if (!descriptors.arena && !mappings.arena) files = look_in_files(process);
  for (Found* found : {&descriptors, &mappings, &files}) {
    if (!found->arena) continue;
    if (is_refused != nullptr) *is_refused = !*found->arena;
    if (!*found->arena) return Error{described(*facts) + ": " + found->arena->error().message};
    return Attached{process, std::move(*facts), std::move(found->arena->value())};
  }
  // Something has the name of an arena and is no memfd of small pages.
  if (descriptors.error == EINVAL || mappings.error == EINVAL) {
    if (is_refused != nullptr) *is_refused = true;
    return Error{described(*facts) +
                 ": what it has in an arena's place is not usual memory (huge pages?); it was not made by libkarst"};
  }
  return Error{why_not(process, *facts, descriptors, mappings)};
}

namespace {

/// What --library names is left on by the budget of a process that is attached to.
void keep_named(const ArenaView& arena, const choice::FunctionChoice& choice) {
  const reader::Process process = arena.process();
  auto writer = ArenaWriter::of(arena);
  if (!writer) return;
  for (const reader::Function& f : process.functions)
    if (f.module < process.modules.size() && choice.names_all_of(process.modules[f.module].path)) writer->keep(f.id);
}

}  // namespace

Result<Attached> attach_or_load(const HeldProcess& process, const std::string& library, const PlainAttach& plain,
                                PlainPrograms& programs, Brought& brought) {
  brought = {};
  auto facts = process_facts(process);
  if (!facts) return facts.error();
  bool is_refused = false;
  auto found = attach(process, &is_refused);
  if (found || is_refused || facts->state == 'Z' || (geteuid() != 0 && facts->uid != geteuid())) return found;
  const auto problem = [&](const Error& why) {
    const auto now = process_facts(process);  // one that ends meanwhile refuses this and that
    return Error{described(*facts) +
                 " cannot be attached to: " + (now && now->state != 'Z' ? why.message : "it has ended meanwhile")};
  };
  if (facts->state == 'T')
    return Error{described(*facts) + " is stopped (SIGSTOP, Ctrl-Z); let it go on first: kill -CONT " +
                 std::to_string(process.number())};
  if (!has_runtime(process)) {
    if (const Status loaded = load_library(process, library); !loaded) return problem(loaded.error());
    found = attach(process);
    if (found) {
      if (const auto writer = ArenaWriter::of(found->arena)) writer->note_late();
      if (const auto led = write_jumps(process); !led) return problem(led.error());
    }
  }
  // Of a child that was forked while its parent was off.
  if (!found && call_runtime(process, "karst_attach_adopt", "")) found = attach(process);
  if (!found && plain.choice.any()) {
    auto patched = patch_process(process, facts->uid, plain, programs);
    if (!patched) return problem(patched.error());
    brought.patched = *patched;
    found = attach(process);
    choice::FunctionChoice named;
    named.name_libraries(plain.choice.libraries);
    if (found) keep_named(found->arena, named);
  }
  brought.tracing = static_cast<bool>(found);
  return found;
}

namespace {

/// In order.
std::vector<pid_t> all_numbers() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
      pids.push_back(static_cast<pid_t>(std::atol(name.c_str())));
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace

std::vector<ProcessFacts> find_processes() {
  std::vector<ProcessFacts> all;
  for (const pid_t pid : all_numbers()) {
    if (pid == getpid()) continue;
    const auto process = HeldProcess::open(pid);
    auto facts = process ? process_facts(*process) : process.error();
    if (!facts || facts->state == 'Z' || (geteuid() != 0 && facts->uid != geteuid())) continue;
    if (read_link(process->path("exe")).empty()) continue;  // a thread of the kernel
    all.push_back(std::move(*facts));
  }
  return all;
}

std::vector<Attached> find_traced(std::vector<Error>* refused) {
  std::vector<Attached> all;
  for (const pid_t pid : all_numbers()) {
    bool is_refused = false;
    if (auto one = attach(pid, &is_refused))
      all.push_back(std::move(*one));
    else if (is_refused && refused != nullptr)
      refused->push_back(one.error());
  }
  return all;
}

std::vector<Attached> find_traced(const std::string& name) {
  std::vector<Attached> all = find_traced();
  std::erase_if(all, [&](const Attached& a) { return a.process.name != name && a.process.comm != name; });
  return all;
}

std::vector<std::size_t> fuzzy_matches(const std::vector<std::string>& names, const std::string& typed) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  const auto in_word = [&](char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9'); };
  struct Match {
    long score;
    std::size_t length;
    std::size_t at;
  };
  std::vector<Match> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    long best = typed.empty() ? 0 : -1;
    // From each place where the first letter is; the others at the first place behind.
    for (std::size_t start = 0; !typed.empty() && start < name.size(); ++start) {
      if (lower(name[start]) != lower(typed[0])) continue;
      long score = start == 0 ? 4 : !in_word(name[start - 1]) ? 3 : 1;
      std::size_t at = start + 1;
      std::size_t next = 1;
      for (; next < typed.size() && at < name.size(); ++at) {
        if (lower(name[at]) != lower(typed[next])) continue;
        score += lower(name[at - 1]) == lower(typed[next - 1]) ? 3 : !in_word(name[at - 1]) ? 2 : 1;
        ++next;
      }
      if (next == typed.size()) best = std::max(best, score);
    }
    if (best >= 0) found.push_back({best, name.size(), i});
  }
  std::stable_sort(found.begin(), found.end(), [](const Match& a, const Match& b) {
    return a.score != b.score ? a.score > b.score : a.length < b.length;
  });
  std::vector<std::size_t> result;
  result.reserve(found.size());
  for (const Match& m : found) result.push_back(m.at);
  return result;
}

}  // namespace karst::collect
