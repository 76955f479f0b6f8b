// SPDX-License-Identifier: MIT
#include "collect/live/system.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "collect/inject/load.h"
#include "collect/inject/memory.h"
#include "collect/inject/patch.h"
#include "collect/launch/plain_process.h"
#include "collect/live/control.h"

namespace karst::collect {

using namespace format;

namespace {

constexpr std::uint64_t kMostNames = 1024;

/// libkarst-files.so of .../libkarst-files.so.0
std::string file_of(const SystemWish& wish) {
  const std::string name = wish.library.substr(wish.library.find_last_of('/') + 1);
  return name.substr(0, name.find(".so") + 3);
}

/// Such a library in a process. What the process says of itself is believed for itself alone.
class Library {
 public:
  /// None: it is not there.
  static Result<std::optional<Library>> find(const Attached& target, const ForeignMemory& memory,
                                             const SystemWish& wish) {
    const std::string file = file_of(wish);
    for (const Mapping& m : mappings_of(target.held)) {
      if (m.offset != 0 || !m.file_name().starts_with(file)) continue;
      const auto module = ForeignModule::of(memory, m.begin);
      Library library(memory);
      library.at_ = module ? module->find(memory, "karst_interpose") : 0;
      if (library.at_ == 0 || !library.read() || library.now_.version != kInterposeVersion)
        return Error{"the " + file + " in it is of another version"};
      return std::optional(library);
    }
    return std::optional<Library>();
  }

  bool read() { return memory_->read(at_, &now_, sizeof now_); }
  const InterposeSwitch& now() const { return now_; }

  /// Of the names that the process has entered so far.
  std::vector<std::uint32_t> names(const Attached& target) const {
    constexpr std::uint64_t kId = 20;  // in struct karst_name
    std::vector<std::uint32_t> ids;
    const std::uint64_t count = std::min((now_.names_end - now_.names) / sizeof(std::uint64_t), kMostNames);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto name = memory_->get<std::uint64_t>(now_.names + i * sizeof(std::uint64_t));
      const auto id = name && *name != 0 ? memory_->get<std::uint32_t>(*name + kId) : std::nullopt;
      if (id && *id != 0 && *id <= target.arena.function_count()) ids.push_back(*id);
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }

  bool set_sample(std::uint64_t sample) const { return write(offsetof(InterposeSwitch, sample), sample); }
  InterposeMode mode() const { return static_cast<InterposeMode>(now_.mode); }
  bool set_mode(InterposeMode mode) const {
    return write(offsetof(InterposeSwitch, mode), static_cast<std::uint32_t>(mode));
  }

 private:
  explicit Library(const ForeignMemory& memory) : memory_(&memory) {}
  template <typename T>
  bool write(std::uint64_t offset, const T& value) const {
    return memory_->write(at_ + offset, &value, sizeof value);
  }
  const ForeignMemory* memory_;
  std::uint64_t at_ = 0;
  InterposeSwitch now_{};
};

/// As the library sums them up when it looks at all modules (interpose/slots.h). None: the loader's list is not there.
std::optional<std::uint64_t> modules_now(const ForeignMemory& memory, const std::vector<Mapping>& mappings) {
  const auto modules = own_modules(memory, mappings);
  if (!modules) return std::nullopt;
  std::uint64_t sum = 0;
  for (const std::uint64_t dynamic : *modules) sum += module_mark(dynamic);
  return sum;
}

Error unwritable() { return Error{"its memory cannot be written to"}; }

/// Off, whatever is changed, and on again.
Status change(Requester& requester, const std::vector<std::uint32_t>& names, std::chrono::milliseconds limit) {
  requester.choose(names, false);
  return requester.apply(limit);
}

Status begin(Requester& requester, const Attached& target, const Library& library, const SystemWish& wish,
             std::chrono::milliseconds limit) {
  const InterposeSwitch& now = library.now();
  if (now.sample_set != 0 && now.sample != wish.sample)
    return Error{now.sample == 0 ? "all of it was recorded before; a sample would count for less than it is. "
                                   "'--system memory' records all again"
                                 : "one allocation in " + std::to_string(now.sample) +
                                       " bytes was recorded before, and that stays so for the process's life: "
                                       "'--system memory=" +
                                       std::to_string(now.sample) + "'"};
  const std::vector<std::uint32_t> names = library.names(target);
  if (Status off = change(requester, names, limit); !off) return off;
  if (!library.set_sample(wish.sample) || !library.set_mode(wish.mode)) return unwritable();
  requester.choose(names, true);
  return requester.apply(limit);
}

/// Those of the arena that begin there, second ids among them; in order.
std::vector<std::uint32_t> ids_at(const ArenaView& arena, std::vector<std::uint64_t> addresses) {
  std::sort(addresses.begin(), addresses.end());
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 1; id <= arena.function_count(); ++id)
    if (std::binary_search(addresses.begin(), addresses.end(), arena.address_of(id))) ids.push_back(id);
  return ids;
}

/// Their calls are not recorded twice, and those that begin before do not seem to last for ever: so tracing of the
/// functions ends before their code is changed.
Status begin_detours(Requester& requester, const Attached& target, const SystemWish& wish,
                     std::chrono::milliseconds limit) {
  if (Status brought = bring_detours(target.held, target.process.uid, wish.functions); !brought) return brought;
  const auto detours = detours_of(target.held);
  if (!detours) return detours.error();
  if (!detours->any || detours->stand) return Unit{};
  const std::vector<std::uint32_t> off = requester.choose(ids_at(target.arena, detours->functions), false);
  if (Status done = requester.apply(limit); !done) return done;
  Status written = write_detours(target.held);
  if (written) return written;
  requester.choose(off, true);
  if (Status done = requester.apply(limit); !done) return done;
  return written;
}

Error about(const Attached& target, const std::string& name, const Error& error) {
  return Error{name + " of process " + std::to_string(target.process.pid) + " cannot be recorded: " + error.message};
}

}  // namespace

Result<SystemBegun> begin_system(Attached& target, const SystemWish& wish, std::chrono::milliseconds limit) {
  const auto failed = [&](const Error& error) { return about(target, wish.name, error); };
  const auto memory = ForeignMemory::open(target.held);
  if (!memory) return failed(memory.error());
  auto requester = Requester::take(target);
  if (!requester) return requester.error();
  requester->set_off_at(0);
  requester->set_enabled(true);
  if (const Status on = requester->apply(limit); !on) return failed(on.error());

  SystemBegun begun;
  if (!wish.functions.empty())
    if (const Status own = begin_detours(*requester, target, wish, limit); !own)
      begun.own_problem = own.error().message;
  bool is_fresh = false;
  auto library = Library::find(target, *memory, wish);
  if (!library) return failed(library.error());
  if (!*library) {
    is_fresh = true;
    if (const Status loaded = load_library(target.held, wish.library); !loaded) return failed(loaded.error());
    library = Library::find(target, *memory, wish);
    if (!library) return failed(library.error());
    if (!*library) return failed({"its dynamic linker has loaded another file in the place of " + wish.library});
  } else {
    const bool is_late = (*library)->now().came_late != 0;
    const auto modules = is_late ? modules_now(*memory, mappings_of(target.held)) : std::nullopt;
    const auto detours = wish.functions.empty() ? Result<Detours>(Detours{}) : detours_of(target.held);
    const bool is_closed = detours && detours->any && detours->stand && !detours->are_open;
    if (is_closed || (modules && *modules != (*library)->now().modules))
      if (const Status again =
              call_library(target.held, file_of(wish), "karst_interpose_again", "karst_interpose_problem");
          !again)
        begun.problem = again.error().message;
    if (!(*library)->read()) return failed({"its memory cannot be read"});
  }
  const InterposeSwitch& now = (*library)->now();
  if (now.came_late != 0 && now.problem == InterposeProblem::kMappings && now.slots == 0)
    return failed({"it cannot read its own mappings (has it a descriptor left?)"});
  const bool is_as_wished = (*library)->mode() == wish.mode && (now.sample_set == 0 || now.sample == wish.sample);
  begun.was_on = is_as_wished && !is_fresh;
  begun.came_late = now.came_late != 0;
  begun.slots = now.slots;
  begun.left = now.left;
  begun.inside = now.inside;
  if (!is_as_wished)
    if (const Status done = begin(*requester, target, **library, wish, limit); !done) return failed(done.error());
  return begun;
}

Status give_back_functions(Attached& target, std::chrono::milliseconds limit) {
  const auto detours = detours_of(target.held);
  if (!detours) return detours.error();
  if (!detours->any) return Unit{};
  auto requester = Requester::take(target);
  if (!requester) return requester.error();
  if (requester->choose(ids_at(target.arena, detours->functions), true).empty()) return Unit{};
  return requester->apply(limit);
}

Result<std::vector<std::string>> end_systems(Attached& target, const std::vector<SystemWish>& those,
                                             std::chrono::milliseconds limit) {
  std::vector<std::string> ended;
  const auto memory = ForeignMemory::open(target.held);
  for (const SystemWish& wish : those) {
    if (!memory) return about(target, wish.name, memory.error());
    const auto library = Library::find(target, *memory, wish);
    if (!library) return about(target, wish.name, library.error());
    if (!*library || (*library)->mode() == InterposeMode::kOff) continue;
    auto requester = Requester::take(target);
    if (!requester) return requester.error();
    if (const Status off = change(*requester, (*library)->names(target), limit); !off) return off.error();
    if (!(*library)->set_mode(InterposeMode::kOff)) return about(target, wish.name, unwritable());
    ended.push_back(wish.name);
  }
  return ended;
}

}  // namespace karst::collect
