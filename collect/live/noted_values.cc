// SPDX-License-Identifier: MIT
#include "collect/live/noted_values.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "collect/inject/memory.h"
#include "collect/live/control.h"

namespace karst::collect {

using namespace format;

namespace {

/// The tables of the process's libkarst, as they are there. One thread at a time, which has the Requester.
class Tables {
 public:
  /// Error: why they cannot be reached, or that they have yet to be asked for.
  static Result<Tables> of(const ForeignMemory& memory, const std::vector<Mapping>& mappings) {
    Tables tables(memory);
    tables.at_ = find_in_runtime(memory, mappings, "karst_noted_values");
    if (tables.at_ == 0)
      return Error{
          "it has no libkarst.so that takes such wishes while it runs; a static program needs 'karst run --args'"};
    if (!memory.read(tables.at_, &tables.head_, sizeof tables.head_)) return Error{"its memory cannot be read"};
    if (tables.head_.version != kValueTablesVersion || tables.head_.count > kMostValueSpecs)
      return Error{"it has no memory for such wishes"};
    tables.functions_.resize(tables.head_.count);
    if (!memory.read(tables.head_.functions, tables.functions_.data(), sizeof(std::uint64_t) * tables.head_.count))
      return Error{"its memory cannot be read"};
    return tables;
  }

  enum class Outcome { kBegun, kKnown, kOther, kFull, kUnwritable };
  Outcome begin(std::uint64_t function, const ArenaValueSpec& spec) {
    const auto known = std::find(functions_.begin(), functions_.end(), function);
    if (known != functions_.end()) {
      const std::uint64_t at = spec_at(static_cast<std::size_t>(known - functions_.begin()));
      const auto now = memory_->get<ArenaValueSpec>(at);
      if (!now) return Outcome::kUnwritable;
      if (std::memcmp(now->ops, spec.ops, sizeof spec.ops) != 0) return Outcome::kOther;
      if (now->arguments + now->returned != 0) return Outcome::kKnown;
      // Hooks may be reading it: returned values come behind the arguments.
      return write(at + offsetof(ArenaValueSpec, arguments), spec.arguments) &&
                     write(at + offsetof(ArenaValueSpec, returned), spec.returned)
                 ? Outcome::kBegun
                 : Outcome::kUnwritable;
    }
    if (functions_.size() >= kMostValueSpecs) return Outcome::kFull;
    if (!write(spec_at(functions_.size()), spec) ||
        !write(head_.functions + sizeof(std::uint64_t) * functions_.size(), function))
      return Outcome::kUnwritable;
    functions_.push_back(function);
    return Outcome::kBegun;
  }

  /// True if its values were noted.
  bool end(std::uint64_t function) {
    const auto known = std::find(functions_.begin(), functions_.end(), function);
    if (known == functions_.end()) return false;
    const std::uint64_t at = spec_at(static_cast<std::size_t>(known - functions_.begin()));
    const auto now = memory_->get<ArenaValueSpec>(at);
    return now && now->arguments + now->returned != 0 &&
           write(at + offsetof(ArenaValueSpec, returned), std::uint8_t{0}) &&
           write(at + offsetof(ArenaValueSpec, arguments), std::uint8_t{0});
  }

  /// What was begun and ended is whole; the process is to look.
  bool publish() {
    const auto count = static_cast<std::uint32_t>(functions_.size());
    const auto changes = static_cast<std::uint8_t>(head_.changes + 1U);
    return write(at_ + offsetof(ValueTables, count), count) && write(at_ + offsetof(ValueTables, changes), changes);
  }

  const std::vector<std::uint64_t>& functions() const { return functions_; }

 private:
  explicit Tables(const ForeignMemory& memory) : memory_(&memory) {}
  std::uint64_t spec_at(std::size_t number) const { return head_.specs + sizeof(ArenaValueSpec) * number; }
  template <typename T>
  bool write(std::uint64_t address, const T& value) {
    return memory_->write(address, &value, sizeof value);
  }

  const ForeignMemory* memory_;
  std::uint64_t at_ = 0;
  ValueTables head_{};
  std::vector<std::uint64_t> functions_;  ///< by number of the spec
};

/// Modules that lie where the arena says, by the kernel's word.
std::vector<bool> true_modules(const std::vector<reader::Module>& modules, const ForeignMemory& memory,
                               const std::vector<Mapping>& mappings) {
  std::vector<bool> is_true(modules.size());
  for (std::size_t i = 0; i < modules.size(); ++i)
    for (const Mapping& m : mappings) {
      if (m.offset != 0 || m.path != modules[i].path) continue;
      const auto there = ForeignModule::of(memory, m.begin);
      if (there && there->bias() == modules[i].bias) is_true[i] = true;
    }
  return is_true;
}

bool is_code_of(const std::string& path, std::uint64_t address, const std::vector<Mapping>& mappings) {
  return std::any_of(mappings.begin(), mappings.end(),
                     [&](const Mapping& m) { return m.contains(address) && m.path == path && m.is_executable(); });
}

Error about(const Attached& target, const Error& error) {
  return Error{"no values of process " + std::to_string(target.process.pid) + " are noted: " + error.message};
}

}  // namespace

Result<NotingBegun> note_values(Attached& target, const choice::ValueChoice& choice, std::chrono::milliseconds limit) {
  const auto memory = ForeignMemory::open(target.held);
  if (!memory) return about(target, memory.error());
  auto requester = Requester::take(target);
  if (!requester) return requester.error();
  // It makes tables for that.
  __atomic_store_n(&requester->writer().control().values_wanted, 1U, __ATOMIC_RELEASE);
  if (const Status asked = requester->apply(limit); !asked) return asked.error();
  const std::vector<Mapping> mappings = mappings_of(target.held);
  auto tables = Tables::of(*memory, mappings);
  if (!tables) return about(target, tables.error());

  reader::Process process = target.arena.process();
  const symbols::ResolveOptions resolve = resolve_options(target);
  symbols::resolve(process, resolve);
  const std::vector<bool> is_true = true_modules(process.modules, *memory, mappings);
  std::vector<std::vector<const reader::Function*>> functions(process.modules.size());
  for (const reader::Function& f : process.functions)
    if (f.id != 0 && f.module < functions.size() && is_true[f.module] &&
        is_code_of(process.modules[f.module].path, f.address, mappings))
      functions[f.module].push_back(&f);

  NotingBegun begun;
  std::vector<std::uint32_t> ids;
  for (std::size_t m = 0; m < functions.size(); ++m) {
    const choice::ValuesOfModule values = choice.of_module(process.modules[m], functions[m], resolve);
    begun.meant += values.meant;
    if (!values.problem.empty())
      begun.problems.push_back("no values of functions of " + process.modules[m].path +
                               " are noted: " + values.problem);
    if (values.late != 0) begun.problems.push_back(values.problem_of_late(process.modules[m].path));
    std::size_t other = 0;
    std::size_t refused = 0;
    for (const auto& [function, wanted] : values.functions) {
      const auto spec = requester->writer().note_values(function->id, wanted);
      const auto outcome = spec ? tables->begin(function->address, *spec) : Tables::Outcome::kOther;
      if (outcome == Tables::Outcome::kUnwritable) return about(target, {"its memory cannot be written to"});
      other += outcome == Tables::Outcome::kOther ? 1 : 0;
      refused += outcome == Tables::Outcome::kFull ? 1 : 0;
      if (outcome == Tables::Outcome::kOther || outcome == Tables::Outcome::kFull) continue;
      ++begun.noted;
      ids.push_back(function->id);
      if (outcome == Tables::Outcome::kBegun) begun.begun.push_back(function->address);
    }
    const std::string those = " of the functions of " + process.modules[m].path + ": ";
    if (other != 0)
      begun.problems.push_back("the values that were asked for first stay, of " + std::to_string(other) + those +
                               "one text says what all notes of a function mean");
    if (refused != 0)
      begun.problems.push_back("no values are noted of " + std::to_string(refused) + those +
                               std::to_string(kMostValueSpecs) + " functions of a process can have such notes");
  }
  if (!tables->publish()) return about(target, {"its memory cannot be written to"});
  requester->keep(ids);
  requester->choose(ids, true);
  if (!ids.empty()) requester->set_enabled(true);
  if (const Status applied = requester->apply(limit); !applied) return applied.error();
  return begun;
}

Result<std::size_t> end_noting(Attached& target, const std::vector<std::uint64_t>& functions,
                               std::chrono::milliseconds limit) {
  const auto memory = ForeignMemory::open(target.held);
  if (!memory) return about(target, memory.error());
  auto requester = Requester::take(target);
  if (!requester) return requester.error();
  auto tables = Tables::of(*memory, mappings_of(target.held));
  if (!tables) return std::size_t{0};  // none was ever noted
  const std::vector<std::uint64_t> those = functions.empty() ? tables->functions() : functions;
  std::size_t ended = 0;
  for (const std::uint64_t function : those) ended += tables->end(function) ? 1 : 0;
  if (ended == 0) return ended;
  __atomic_store_n(&requester->writer().control().values_wanted, 1U, __ATOMIC_RELEASE);
  if (!tables->publish()) return about(target, {"its memory cannot be written to"});
  if (const Status applied = requester->apply(limit); !applied) return applied.error();
  return ended;
}

}  // namespace karst::collect
