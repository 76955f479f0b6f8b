// SPDX-License-Identifier: MIT
#include "collect/live/handlers.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <utility>

#include "format/handlers.h"

namespace karst::collect {

using namespace format;

namespace {

Error error_of(const Attached& target, const Error& error) {
  return Error{"process " + std::to_string(target.process.pid) + ": " + error.message};
}

/// module+0x1234, as in a trace of what has no symbol.
std::string place_of(std::uint64_t address, const std::vector<Mapping>& mappings) {
  char digits[16];
  const auto there = std::find_if(mappings.begin(), mappings.end(),
                                  [=](const Mapping& m) { return address >= m.begin && address < m.end; });
  const bool is_in_file = there != mappings.end() && !there->path.empty();
  const std::uint64_t offset = is_in_file ? address - there->begin + there->offset : address;
  const auto end = std::to_chars(digits, digits + sizeof digits, offset, 16).ptr;
  return (is_in_file ? there->file_name() + "+0x" : "0x") + std::string(digits, end);
}

}  // namespace

Result<HandledFunctions> handled_functions(const Attached& target) {
  auto memory = ForeignMemory::open(target.held);
  if (!memory) return error_of(target, memory.error());
  const std::vector<Mapping> mappings = mappings_of(target.held);
  const std::uint64_t at = find_in_runtime(*memory, mappings, "karst_handled");
  if (at == 0) return error_of(target, {"it has no libkarst.so with handlers"});
  const auto table = memory->get<HandledTable>(at);
  std::vector<Handled> handled;
  if (!table) return error_of(target, {"its memory cannot be read"});
  if (table->version != kHandledVersion || table->functions == 0) return HandledFunctions{std::move(*memory), {}};
  std::vector<HandledFunction> functions(std::min(table->count, kMostHandled));
  if (!memory->read(table->functions, functions.data(), functions.size() * sizeof functions[0]))
    return error_of(target, {"its memory cannot be read"});
  constexpr std::size_t kMostText = std::size_t{64} << 20;
  std::size_t text = 0;
  for (std::size_t i = 0; i < functions.size() && text < kMostText; ++i) {
    const HandledFunction& f = functions[i];
    std::string name = f.name == 0 ? std::string() : memory->text(f.name, kMostHandledName);
    if (name.empty()) name = place_of(f.address, mappings);
    text += name.size();
    handled.push_back(
        {table->functions + i * sizeof f + offsetof(HandledFunction, level), std::move(name), f.calls, f.level});
  }
  return HandledFunctions{std::move(*memory), std::move(handled)};
}

Status set_level(const Attached& target, const HandledFunctions& functions, std::int32_t level) {
  for (const Handled& function : functions.all)
    if (!functions.memory.write(function.place, &level, sizeof level))
      return error_of(target, {"its memory cannot be written to"});
  return Unit{};
}

}  // namespace karst::collect
