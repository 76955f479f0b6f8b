// SPDX-License-Identifier: MIT
// Each name of a function counts, as two may stand at one address. Names that are near are found by letters alone: what
// the glob has before its first star, without regard to case.
#include "patch/named.h"

#include <algorithm>
#include <string_view>

#include "symbols/demangle.h"

namespace karst::patch {
namespace {

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

std::string small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), small_letter);
  return small;
}

/// What people write: demangled, without a symbol's version.
std::string shown_name(std::string_view link_name) {
  return symbols::demangle(std::string(link_name.substr(0, link_name.find('@'))).c_str());
}

/// How many letters of `wanted` the name has from its begin on; all of them also if it has them elsewhere.
std::size_t likeness(std::string_view wanted, const std::string& name) {
  const std::string small = small_letters(name);
  if (small.find(wanted) != std::string::npos) return wanted.size();
  const auto differs = std::mismatch(wanted.begin(), wanted.end(), small.begin(), small.end());
  return static_cast<std::size_t>(differs.first - wanted.begin());
}

/// Names that have most of the glob's letters; at least three of them.
std::vector<std::string> names_like(std::string_view glob, const std::vector<std::string>& names) {
  constexpr std::size_t kFew = 3;
  constexpr std::size_t kLeast = 3;
  while (glob.starts_with('*')) glob.remove_prefix(1);
  const std::string wanted = small_letters(glob.substr(0, glob.find_first_of("*?[")));
  std::vector<std::string> best;
  std::size_t most = kLeast;
  for (const std::string& name : names) {
    const std::size_t like = likeness(wanted, name);
    if (like > most) best.clear();
    if (like < most) continue;
    most = like;
    if (best.size() < kFew && std::find(best.begin(), best.end(), name) == best.end()) best.push_back(name);
  }
  return best;
}

}  // namespace

std::vector<std::uint64_t> named_in(const symbols::SymbolTable& table, const choice::GlobSet& globs) {
  std::vector<std::uint64_t> found;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const symbols::Symbol symbol = table.at(i);
    reader::Function function;
    function.name = std::string(symbol.name);
    const bool is_part = symbol.link_name.find(".cold") != std::string_view::npos;
    if (!is_part && globs.matches(function)) found.push_back(symbol.begin);
  }
  return found;
}

std::vector<std::uint64_t> addresses_of(const ElfImage& image, const WantedNames& wanted,
                                        std::vector<std::string>& near) {
  std::vector<std::uint64_t> found = wanted.addresses;
  std::vector<std::string> names;
  for (const ElfImage::NamedCode& symbol : image.functions()) {
    reader::Function function;
    function.name = shown_name(symbol.name);
    if (wanted.globs->matches(function)) found.push_back(symbol.address);
    names.push_back(std::move(function.name));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.empty()) near = names_like(wanted.texts.empty() ? std::string() : wanted.texts.front(), names);
  return found;
}

void judge_named(const std::vector<std::uint64_t>& named, const Frames& frames, std::vector<Outcome>& functions) {
  std::erase_if(functions, [](const Outcome& f) { return f.left_out == LeftOut::kNotNamed; });
  std::vector<std::uint64_t> seen;
  for (const Outcome& f : functions) seen.push_back(f.begin);
  for (const std::uint64_t address : named)
    if (!std::binary_search(seen.begin(), seen.end(), address))
      functions.push_back({address, address, frames.find(address) ? LeftOut::kSharedCode : LeftOut::kNoFrame});
  std::sort(functions.begin(), functions.end(), [](const Outcome& a, const Outcome& b) { return a.begin < b.begin; });
}

}  // namespace karst::patch
