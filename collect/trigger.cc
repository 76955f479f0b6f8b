#include "collect/trigger.h"

#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "collect/clock.h"
#include "format/moments.h"

namespace karst::collect {
namespace {

struct Mapping {
  std::string path;
  std::uint64_t begin = 0;
  std::uint64_t offset = 0;
};

/// Executable mappings of files.
std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> found;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream text(line);
    Mapping m;
    std::uint64_t end = 0;
    char dash = 0;
    std::string rights;
    std::string device;
    std::uint64_t inode = 0;
    if (!(text >> std::hex >> m.begin >> dash >> end >> rights >> m.offset >> device >> std::dec >> inode)) continue;
    std::getline(text >> std::ws, m.path);
    if (inode != 0 && rights.size() == 4 && rights[2] == 'x' && m.path.starts_with('/') &&
        !m.path.ends_with(" (deleted)"))
      found.push_back(std::move(m));
  }
  return found;
}

/// Run-time address minus the address in the ELF file.
std::optional<std::uint64_t> bias_of(const Mapping& mapping) {
  const Descriptor file(open(mapping.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(file.get(), ELF_C_READ, nullptr);
  std::optional<std::uint64_t> bias;
  std::size_t count = 0;
  if (elf != nullptr && elf_getphdrnum(elf, &count) == 0) {
    for (std::size_t i = 0; i < count && !bias; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD ||
          (segment.p_flags & PF_X) == 0)
        continue;
      constexpr std::uint64_t kPage = 4096;
      const std::uint64_t first = segment.p_offset / kPage * kPage;
      if (mapping.offset < first || mapping.offset >= segment.p_offset + segment.p_filesz) continue;
      bias = mapping.begin - mapping.offset - (segment.p_vaddr - segment.p_offset);
    }
  }
  if (elf != nullptr) elf_end(elf);
  return bias;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 10; ++i) text += "\n  " + names[i];
  if (names.size() > 10) text += "\n  and " + std::to_string(names.size() - 10) + " more";
  return text;
}

}  // namespace

TriggerClock::TriggerClock() : begin_(read_clock_pair()) {}

std::uint64_t TriggerClock::to_ticks(std::uint64_t ns) {
  const std::uint64_t rate = make_clock({begin_, read_clock_pair()}).ticks_per_second;
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(ns) * rate / 1'000'000'000U);
}

void keep_hit(TriggerHit taken, std::uint64_t last, RecordedProcess& process) {
  History& history = process.history;
  reader::Moment moment;
  moment.kind = static_cast<std::uint32_t>(format::MomentKind::kTrigger);
  moment.what = std::move(taken.what);
  moment.begin_ticks = moment.end_ticks = taken.hit.ticks;
  moment.tid = static_cast<std::uint32_t>(taken.hit.tid);
  moment.address = taken.hit.address;
  moment.arguments = taken.hit.arguments;
  if (taken.hit.has_arguments) moment.flags |= format::kMomentHasArguments;
  const std::uint64_t start = history.start().ticks;
  moment.kept_from = std::max(start, taken.hit.ticks > last ? taken.hit.ticks - last : 0);
  moment.whole_from = history.keep(moment.kept_from);
  if (moment.whole_from > moment.kept_from) moment.flags |= format::kMomentGaveUp;
  moment.kept_to = std::max(taken.hit.ticks, read_clock_pair().ticks);
  moment.thread = format::kNoThread;
  for (const reader::Thread& thread : history.threads())
    if (thread.tid == moment.tid && !thread.exited) moment.thread = thread.index;
  // The entry sled is among a function's first instructions.
  constexpr std::uint64_t kSledWithin = 16;
  for (std::uint32_t id = 1; id <= history.function_count(); ++id) {
    const std::uint64_t address = history.address_of(id);
    if (address < moment.address || address - moment.address >= kSledWithin) continue;
    moment.function = id;
    break;
  }
  process.moments.push_back(std::move(moment));
}

Triggers::Triggers(std::vector<symbols::PlaceName> places, bool several, symbols::ResolveOptions resolve)
    : several_(several), resolve_(std::move(resolve)) {
  for (symbols::PlaceName& name : places) {
    Place place;
    place.name = std::move(name);
    places_.push_back(std::move(place));
  }
}

Status Triggers::arm_in(const std::string& module, std::uint64_t bias, bool executable) {
  for (Place& place : places_) {
    if (!place.addresses.empty()) continue;
    auto found = symbols::find_places(place.name, module, executable, resolve_);
    if (!found) continue;  // a module that cannot be read has no names
    place.inlined_into.insert(found->inlined_into.begin(), found->inlined_into.end());
    if (found->places.size() > 1 && place.name.kind == symbols::PlaceName::Kind::kFunction && !several_) {
      std::vector<std::string> names;
      for (const symbols::CodePlace& p : found->places) names.push_back(p.name);
      return Error{"'" + place.name.text + "' is the name of " + std::to_string(names.size()) + " functions of " +
                   module + "; give one with its parameters, or --multi for all of them:" + list_of(names)};
    }
    for (const symbols::CodePlace& p : found->places) {
      if (const Status added = breakpoints_->add(p.address + bias); !added)
        return Error{"no trigger can be set at '" + place.name.text + "': " + added.error().message};
      place.addresses.emplace(p.address + bias, p.name);
    }
  }
  return Unit{};
}

Status Triggers::arm(pid_t pid) {
  if (!breakpoints_) breakpoints_.emplace(pid);
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
  for (const Mapping& mapping : mappings_of(pid)) {
    const std::string key = mapping.path + '@' + std::to_string(mapping.begin);
    if (!searched_.insert(key).second) continue;
    const auto bias = bias_of(mapping);
    if (!bias) continue;
    modules_.push_back(mapping.path);
    if (const Status armed = arm_in(mapping.path, *bias, mapping.path == executable.string()); !armed) return armed;
  }
  // A function that is nowhere as such, but inside of others, will not come by waiting for libraries.
  for (const Place& place : places_) {
    if (!place.addresses.empty() || place.inlined_into.empty()) continue;
    const std::vector<std::string> names(place.inlined_into.begin(), place.inlined_into.end());
    return Error{"'" + place.name.text +
                 "' has no code of its own: the compiler inlined it everywhere, into the functions below. Give one of "
                 "them, or FILE:LINE of a line in it:" +
                 list_of(names)};
  }
  return Unit{};
}

bool Triggers::waiting() const {
  return std::any_of(places_.begin(), places_.end(), [](const Place& p) { return p.addresses.empty(); });
}

bool Triggers::done() const {
  return std::all_of(places_.begin(), places_.end(), [](const Place& p) { return p.hits >= p.name.count; });
}

void Triggers::add_descriptors(std::vector<pollfd>& descriptors) const {
  if (breakpoints_) breakpoints_->add_descriptors(descriptors);
}

std::vector<TriggerHit> Triggers::take() {
  std::vector<TriggerHit> taken;
  if (!breakpoints_) return taken;
  for (const BreakpointHit& hit : breakpoints_->take()) {
    for (Place& place : places_) {
      const auto at = place.addresses.find(hit.address);
      if (at == place.addresses.end() || place.hits >= place.name.count) continue;
      const bool says_it = at->second == place.name.text;
      taken.push_back({hit, says_it ? place.name.text : place.name.text + " (" + at->second + ")"});
      if (++place.hits < place.name.count) continue;
      for (const auto& [address, name] : place.addresses) breakpoints_->remove(address);
    }
  }
  return taken;
}

std::vector<reader::Problem> Triggers::problems() const {
  std::vector<reader::Problem> problems;
  for (const Place& place : places_) {
    if (!place.addresses.empty()) {
      if (place.hits == 0) problems.push_back({"the trigger '" + place.name.text + "' was armed and never hit"});
      continue;
    }
    problems.push_back({"the trigger '" + place.name.text + "' was found in none of the " +
                        std::to_string(modules_.size()) +
                        " modules of the program; is it spelled as karst report shows it, and compiled with -g?"});
  }
  return problems;
}

}  // namespace karst::collect
