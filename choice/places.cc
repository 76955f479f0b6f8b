// SPDX-License-Identifier: MIT
#include "choice/places.h"

#include <elfutils/libdw.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/plain_name.h"
#include "binary/elf_module.h"
#include "sandbox/sandbox.h"
#include "symbols/symbol_table.h"

namespace karst::choice {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

/// kNone when it is no number.
std::uint64_t number_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error != std::errc() || end != text.data() + text.size() || text.empty() ? kNone : value;
}

/// "dir/file.cc" or "file.cc", but not "std::vector<int>::at".
bool looks_like_file(std::string_view text) {
  if (text.find("::") != std::string_view::npos || text.find('(') != std::string_view::npos) return false;
  const auto slash = text.rfind('/');
  const std::string_view file = slash == std::string_view::npos ? text : text.substr(slash + 1);
  return file.find('.') != std::string_view::npos && file.back() != '.';
}

/// The name up to its parameters: "f(int)" is "f", "(anonymous namespace)::f(int)" "(anonymous namespace)::f".
std::string_view up_to_parameters(std::string_view name) {
  int depth = 0;
  for (std::size_t i = name.size(); i != 0; --i) {
    const char c = name[i - 1];
    if (c == ')' || c == '>') ++depth;
    if (c == '(' || c == '<') --depth;
    if (depth == 0 && c == '(') return name.substr(0, i - 1);
  }
  return name;
}

std::string_view without_clone(std::string_view name) { return name.substr(0, name.find(" [clone")); }

bool is_called(std::string_view name, std::string_view wanted) {
  const std::string_view plain = without_clone(name);
  return plain == wanted || up_to_parameters(plain) == wanted || plain_name(plain) == wanted ||
         (plain.ends_with(" const") && up_to_parameters(plain.substr(0, plain.size() - 6)) == wanted);
}

bool is_cold(const symbols::Symbol& symbol) {
  return symbol.name.find("[clone .cold") != std::string_view::npos ||
         symbol.link_name.find(".cold") != std::string_view::npos;
}

void find_function(const symbols::SymbolTable& table, std::string_view wanted, FoundPlaces& found) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    const symbols::Symbol symbol = table.at(i);
    if (!is_cold(symbol) && (is_called(symbol.name, wanted) || symbol.link_name == wanted))
      found.places.push_back({symbol.begin, std::string(symbol.name)});
    for (std::size_t k = 0; k < symbol.inlined_count; ++k) {
      if (!is_called(table.inlined_at(symbol.inlined_first + k).name, wanted)) continue;
      found.inlined_into.emplace_back(without_clone(symbol.name));
      break;
    }
  }
}

/// Functions that the linker knows by that name, too: of several names of one, a table has one. Libraries have many:
/// malloc is __libc_malloc to glibc itself.
void find_other_names(const binary::ElfModule& module, const PlaceName& name, FoundPlaces& found) {
  for (const binary::ElfFunction& function : module.functions()) {
    const std::string_view known = function.name;
    if (function.chooses || known.substr(0, known.find('@')) != name.name) continue;
    const std::uint64_t address = function.range.begin;
    if (found.places.empty() || found.places.back().address != address) found.places.push_back({address, name.name});
  }
}

struct FreeLines {
  void operator()(Dwarf_Line** lines) const { std::free(lines); }
};

/// The first address of each piece of code that the compiler made of the line.
void find_line(const binary::ElfModule& module, const symbols::SymbolTable& table, const PlaceName& name,
               FoundPlaces& found) {
  Dwarf_Addr bias = 0;
  Dwarf* dwarf = module.dwarf(&bias);
  if (dwarf == nullptr) return;
  Dwarf_Line** raw = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrc_file(dwarf, name.name.c_str(), static_cast<int>(name.number), 0, &raw, &count) != 0) return;
  const std::unique_ptr<Dwarf_Line*[], FreeLines> lines(raw);
  std::vector<std::uint64_t> functions;
  std::vector<std::uint64_t> addresses;
  for (std::size_t i = 0; i < count; ++i) {
    int line = 0;
    Dwarf_Addr address = 0;
    if (dwarf_lineno(lines[i], &line) == 0 && static_cast<std::uint64_t>(line) == name.number &&
        dwarf_lineaddr(lines[i], &address) == 0)
      addresses.push_back(address + bias);
  }
  std::sort(addresses.begin(), addresses.end());
  for (const std::uint64_t address : addresses) {
    const auto symbol = table.lookup(address);
    const std::uint64_t function = symbol ? symbol->begin : 0;
    // One a function: later pieces of the line are reached by way of the first one, or not at all.
    if (std::find(functions.begin(), functions.end(), function) != functions.end()) continue;
    functions.push_back(function);
    found.places.push_back({address, symbol ? std::string(symbol->name) : name.text});
  }
}

}  // namespace

Result<PlaceName> PlaceName::parse(std::string_view text) {
  PlaceName place;
  const auto refuse = [&] {
    return Error{"'" + std::string(text) + "' is no place: a function, FILE:LINE or 0xADDRESS is needed, :N behind it"};
  };
  if (text.empty()) return refuse();
  std::string_view rest = text;
  const auto take_number = [&rest] {
    const auto colon = rest.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || rest[colon - 1] == ':') return kNone;
    const std::uint64_t taken = number_of(rest.substr(colon + 1), 10);
    if (taken != kNone) rest = rest.substr(0, colon);
    return taken;
  };
  std::uint64_t times = take_number();
  const std::string_view before = rest;
  std::uint64_t line = times != kNone ? take_number() : kNone;
  if (line == kNone || !looks_like_file(rest)) {
    rest = before;
    line = kNone;
    if (times != kNone && looks_like_file(rest)) std::swap(line, times);
  }
  if (line != kNone) {
    place.kind = Kind::kLine;
    place.number = line;
  }
  place.text = std::string(text);
  if (place.kind != Kind::kLine) {
    const auto hex = rest.rfind("0x");
    if (hex == 0 || (hex != std::string_view::npos && hex > 1 && rest[hex - 1] == '+')) {
      const std::uint64_t address = number_of(rest.substr(hex + 2), 16);
      if (address != kNone) {
        place.kind = Kind::kAddress;
        place.number = address;
        rest = rest.substr(0, hex == 0 ? 0 : hex - 1);
      }
    }
  }
  place.name = std::string(rest);
  if (times != kNone) {
    if (times == 0 || times > 1'000'000) return refuse();
    place.count = static_cast<std::uint32_t>(times);
  }
  if (place.kind == Kind::kLine && (place.number == 0 || place.number > 0x7fffffff)) return refuse();
  return place;
}

Result<FoundPlaces> find_places(const PlaceName& name, const std::filesystem::path& module, bool is_executable,
                                const symbols::ResolveOptions& options) {
  FoundPlaces found;
  if (name.kind == PlaceName::Kind::kAddress) {
    const bool here = name.name.empty() ? is_executable : module.filename() == name.name;
    if (here) found.places.push_back({name.number, name.text});
    return found;
  }
  const auto table = options.table(module);
  if (!table) return table.error();
  if (name.kind == PlaceName::Kind::kFunction) {
    find_function(**table, name.name, found);
    if (!found.places.empty()) return found;
  }
  sandbox::SandboxOptions sandbox{.as = options.as};
  if (options.debug.servers != nullptr) sandbox.keep = options.debug.servers->descriptors();
  const auto answer = sandbox::in_sandbox(sandbox, [&](sandbox::AnswerWriter& out) {
    FoundPlaces others;
    binary::DebugSearch search = options.debug;
    if (search.servers != nullptr) search.servers->stay_offline();  // what they have was fetched for the table
    auto elf = binary::ElfModule::open(module, search);
    if (elf && name.kind == PlaceName::Kind::kLine) find_line(*elf, **table, name, others);
    if (elf && name.kind == PlaceName::Kind::kFunction) find_other_names(*elf, name, others);
    out.text(elf ? std::string() : elf.error().message);
    out.number(others.places.size());
    for (const CodePlace& place : others.places) {
      out.number(place.address);
      out.text(place.name);
    }
  });
  if (!answer) return Error{"cannot find places in " + module.string() + ": " + answer.error().message};
  sandbox::AnswerReader in(*answer);
  if (const std::string_view error = in.text(); !error.empty()) return Error{std::string(error)};
  for (std::uint64_t i = in.count(2 * sizeof(std::uint64_t)); i != 0; --i) {
    const std::uint64_t address = in.number();
    found.places.push_back({address, std::string(in.text())});
  }
  return found;
}

}  // namespace karst::choice
