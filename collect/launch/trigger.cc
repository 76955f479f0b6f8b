// SPDX-License-Identifier: MIT
#include "collect/launch/trigger.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "arch/page.h"
#include "base/clock.h"
#include "base/suggestion.h"
#include "binary/elf_file.h"
#include "collect/launch/foreign_file.h"
#include "collect/launch/program.h"
#include "format/moments.h"

namespace karst::collect {
namespace {

/// Run-time address minus the address in the ELF file.
std::optional<std::uint64_t> bias_of(const std::string& path, std::uint64_t begin, std::uint64_t offset) {
  for (const GElf_Phdr& s : binary::ElfFile(open_regular_file(path)).segments()) {
    if (s.p_type != PT_LOAD || (s.p_flags & PF_X) == 0) continue;
    const std::uint64_t first = s.p_offset / arch::kPage * arch::kPage;
    if (offset >= first && offset < s.p_offset + s.p_filesz) return begin - offset - (s.p_vaddr - s.p_offset);
  }
  return std::nullopt;
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
  // A forked child may be hit before the first call of its own.
  moment.kept_from = std::min(std::max(start, taken.hit.ticks > last ? taken.hit.ticks - last : 0), taken.hit.ticks);
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

namespace {

/// Executable mappings of files.
std::vector<Mapping> code_of(const HeldProcess& process) {
  std::vector<Mapping> found = mappings_of(process);
  std::erase_if(found, [](const Mapping& m) {
    return m.inode == 0 || !m.is_executable() || !m.path.starts_with('/') || m.path.ends_with(" (deleted)");
  });
  return found;
}

}  // namespace

Triggers::Triggers(std::vector<choice::PlaceName> places, bool several, symbols::ResolveOptions resolve)
    : several_(several), resolve_(std::move(resolve)) {
  for (choice::PlaceName& name : places) {
    Place place;
    place.name = std::move(name);
    places_.push_back(std::move(place));
  }
}

bool Triggers::Image::has(std::uint32_t place) const {
  return std::any_of(armed.begin(), armed.end(), [place](const auto& a) { return a.second.place == place; });
}

/// Null: the module cannot be read, and has no names. Processes of one program look each module through once.
const choice::FoundPlaces* Triggers::find(std::uint32_t place, const Mapping& mapping, bool executable) {
  const std::string key =
      std::to_string(place) + (executable ? '!' : ':') + std::to_string(mapping.inode) + mapping.path;
  const auto [at, is_new] = found_.try_emplace(key);
  if (is_new)
    if (auto found = choice::find_places(places_[place].name, mapping.path, executable, resolve_))
      at->second = std::move(*found);
  return at->second ? &*at->second : nullptr;
}

Status Triggers::arm_in(Image& image, const Mapping& mapping, const std::string& key) {
  const auto bias = bias_of(mapping.path, mapping.begin, mapping.offset);
  if (!bias) return Unit{};
  modules_.insert(mapping.path);
  const bool executable = mapping.path == image.executable;
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (place.done() || image.has(i)) continue;
    // An address in the executable means nothing in another one.
    const bool is_address = place.name.kind == choice::PlaceName::Kind::kAddress && place.name.name.empty();
    if (is_address && image.executable != first_executable_) continue;
    const choice::FoundPlaces* found = find(i, mapping, executable);
    if (found == nullptr) continue;
    image.inlined_into[i].insert(found->inlined_into.begin(), found->inlined_into.end());
    if (found->places.size() > 1 && place.name.kind == choice::PlaceName::Kind::kFunction && !several_) {
      std::vector<std::string> names;
      for (const choice::CodePlace& p : found->places) names.push_back(p.name);
      return Error{"'" + place.name.text + "' is the name of " + std::to_string(names.size()) + " functions of " +
                   mapping.path + "; give one with its parameters, or --multi for all of them:" + list_of(names)};
    }
    for (const choice::CodePlace& p : found->places) {
      if (const Status added = breakpoints_->add(*image.process, p.address + *bias, i); !added) {
        if (!image.process->is_there()) return Unit{};  // it has ended meanwhile
        return Error{"no trigger can be set at '" + place.name.text + "': " + added.error().message};
      }
      image.armed.emplace(p.address + *bias, Armed{i, p.name, key, read_clock_pair().ticks});
      place.found = true;
    }
  }
  return Unit{};
}

Status Triggers::look(Image& image) {
  const std::vector<Mapping> mappings = code_of(*image.process);
  image.goes_on = !mappings.empty();
  for (const Mapping& mapping : mappings) {
    const std::string key = mapping.path + '@' + std::to_string(mapping.begin);
    if (!image.searched.insert(key).second) continue;
    if (Status armed = arm_in(image, mapping, key); !armed) return armed;
  }
  return Unit{};
}

Status Triggers::arm(pid_t pid) {
  if (const auto known = images_.find(pid); known != images_.end() && known->second.process) {
    if (known->second.process->is_there()) return arm(HeldProcess(*known->second.process));
    replaced(pid);  // by another process of this number
  }
  const auto process = HeldProcess::open(pid);
  return process ? arm(*process) : Status(Unit{});  // it has ended meanwhile
}

Status Triggers::arm(const HeldProcess& process) {
  if (!breakpoints_) breakpoints_.emplace();
  if (!images_.contains(process.number())) forget_ended();
  Image& image = images_[process.number()];
  image.process = process;
  if (image.number == 0) image.number = ++count_;
  if (image.executable.empty()) {
    image.executable = program_of_process(process);
    if (first_executable_.empty()) first_executable_ = image.executable;
  }
  if (Status armed = look(image); !armed) return armed;
  // A function that is nowhere as such, but inside of others, will not come by waiting for libraries.
  for (const auto& [i, into] : image.inlined_into) {
    if (places_[i].found || into.empty()) continue;
    const std::vector<std::string> names(into.begin(), into.end());
    return Error{"'" + places_[i].name.text +
                 "' has no code of its own: the compiler inlined it everywhere, into the functions below. Give one of "
                 "them, or FILE:LINE of a line in it:" +
                 list_of(names)};
  }
  return Unit{};
}

Status Triggers::arm_again() {
  for (auto& [pid, image] : images_) {
    if (!image.goes_on) continue;
    bool lacks = false;
    for (std::uint32_t i = 0; i < places_.size(); ++i) lacks = lacks || (!places_[i].done() && !image.has(i));
    if (!lacks) continue;
    image.goes_on = image.process && image.process->is_there();
    if (!image.goes_on) continue;
    if (Status armed = arm(HeldProcess(*image.process)); !armed) return armed;
  }
  return Unit{};
}

Status Triggers::forked(pid_t child, pid_t parent, std::uint64_t ticks) {
  const auto from = images_.find(parent);
  if (from == images_.end()) return arm(child);
  Image image = from->second;
  image.process.reset();
  image.goes_on = true;
  image.number = 0;
  for (auto at = image.armed.begin(); at != image.armed.end();) {
    if (ticks == 0 || at->second.ticks <= ticks) {
      ++at;
      continue;
    }
    image.searched.erase(at->second.module);  // the child may have been there before
    at = image.armed.erase(at);
  }
  images_[child] = std::move(image);
  return arm(child);
}

void Triggers::replaced(pid_t pid) {
  images_.erase(pid);
  if (breakpoints_) breakpoints_->forget(pid);
}

/// Children of those that have ended have their breakpoints; but descriptors are few.
void Triggers::forget_ended() {
  constexpr std::size_t kMostEnded = 32;
  if (images_.size() <= kMostEnded) return;
  std::map<std::uint64_t, pid_t> ended;
  for (const auto& [pid, image] : images_)
    if (!image.process || !image.process->is_there()) ended.emplace(image.number, pid);
  for (auto at = ended.begin(); ended.size() > kMostEnded; at = ended.erase(at)) replaced(at->second);
}

bool Triggers::waiting() const {
  return std::any_of(images_.begin(), images_.end(), [this](const auto& image) {
    if (!image.second.goes_on) return false;
    for (std::uint32_t i = 0; i < places_.size(); ++i)
      if (!places_[i].done() && !image.second.has(i)) return true;
    return false;
  });
}

bool Triggers::done() const {
  return std::all_of(places_.begin(), places_.end(), [](const Place& p) { return p.done(); });
}

void Triggers::add_descriptors(std::vector<pollfd>& descriptors) const {
  if (breakpoints_) breakpoints_->add_descriptors(descriptors);
}

std::vector<TriggerHit> Triggers::take() {
  std::vector<TriggerHit> taken;
  if (!breakpoints_) return taken;
  for (const BreakpointHit& hit : breakpoints_->take()) {
    Place& place = places_[hit.place];
    if (place.done()) continue;
    std::string what = place.name.text;
    if (const auto image = images_.find(hit.owner); image != images_.end())
      if (const auto at = image->second.armed.find(hit.address);
          at != image->second.armed.end() && at->second.name != what)
        what += " (" + at->second.name + ")";
    taken.push_back({hit, std::move(what)});
    ++place.hits;
    if (place.done()) breakpoints_->remove(hit.place);
  }
  return taken;
}

/// "; did you mean 'X'?", or empty. The program's own functions come before those of libraries.
std::string Triggers::meant_instead_of(const std::string& name) const {
  std::set<std::string> names;
  const auto add = [&](const std::string& module) {
    if (const auto table = resolve_.table(std::filesystem::path(module)))
      for (std::size_t i = 0; i < (*table)->size(); ++i) names.emplace((*table)->at(i).name);
  };
  add(first_executable_);
  if (std::string meant = did_you_mean(name, function_words(names)); !meant.empty()) return meant;
  for (const std::string& module : modules_) add(module);
  return did_you_mean(name, function_words(names));
}

std::vector<reader::Problem> Triggers::missing() const {
  std::vector<reader::Problem> problems;
  for (const Place& place : places_) {
    if (place.found) continue;
    const bool is_function = place.name.kind == choice::PlaceName::Kind::kFunction;
    const std::string meant = is_function ? meant_instead_of(place.name.name) : std::string();
    problems.push_back({"the trigger '" + place.name.text + "' was found in none of the " +
                        std::to_string(modules_.size()) + " modules of the program" +
                        (!meant.empty() ? meant
                         : is_function  ? "; is it spelled as karst report shows it?"
                                        : "; is there code for it, and was it compiled with -g?")});
  }
  return problems;
}

std::vector<reader::Problem> Triggers::problems() const {
  std::vector<reader::Problem> problems = missing();
  for (const Place& place : places_)
    if (place.found && place.hits == 0)
      problems.push_back({"the trigger '" + place.name.text + "' was armed and never hit"});
  return problems;
}

}  // namespace karst::collect
