// SPDX-License-Identifier: MIT
// Lists of functions to leave out of tracing (no-trace) or to trace alone (only): what a list file may hold, and how a
// linked program carries its lists. The wrappers read list files when they link; `karst run` reads list files and
// what programs carry. The runtime knows nothing of it.
//
// A list file has one glob a line. `#` at the beginning of a line, or after white space, begins a comment. In a glob
// `*` stands for any text, `?` for any character, `[a-z]` for one of a set ([!...]: not of it), and a backslash takes
// the next character as it is. A glob with a slash is one of source paths, else of demangled names.
//
// A program carries lists in an ELF note (name KARST_NOTE_NAME, type kListNoteType): entries each ended by a NUL byte,
// "no-trace=GLOB", "only=GLOB", "min-instructions=NUMBER".
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/options.h"

namespace karst::format {

inline constexpr std::uint32_t kListNoteType = 0x4b4c;
inline constexpr std::size_t kLongestGlob = 4096;
inline constexpr std::size_t kLongestList = std::size_t{1} << 20;

struct GlobProblem {
  std::size_t line = 0;
  std::string message;
};

/// What is wrong with a glob; empty if nothing is.
inline std::string glob_problem(std::string_view glob) {
  if (glob.size() > kLongestGlob) return "a glob of more than 4096 bytes";
  if (glob.find('\0') != std::string_view::npos) return "a NUL byte: this is no list of globs";
  for (std::size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '\\') {
      if (++i == glob.size()) return "a \\ with nothing behind it";
      continue;
    }
    if (glob[i] != '[') continue;
    std::size_t end = i + 1;
    if (end < glob.size() && (glob[end] == '!' || glob[end] == '^')) ++end;
    const std::size_t first = end;
    while (end < glob.size() && (glob[end] != ']' || end == first)) {
      if (glob[end] == '\\') ++end;
      if (end + 2 < glob.size() && glob[end + 1] == '-' && glob[end + 2] != ']' && glob[end + 2] < glob[end])
        return "a range in [ ] that runs backwards";
      ++end;
    }
    if (end >= glob.size()) return "a [ without its ]; put a \\ before it to mean the character itself";
    i = end;
  }
  return {};
}

/// True if the glob is one of source paths: it has a slash that no backslash precedes.
inline bool is_path_glob(std::string_view glob) {
  for (std::size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '/') return true;
    if (glob[i] == '\\') ++i;
  }
  return false;
}

/// The globs of a list file's text, appended to `globs`. What is wrong, with its line, if anything is.
inline std::optional<GlobProblem> parse_glob_list(std::string_view text, std::vector<std::string>& globs) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    for (auto at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
      if (at != 0 && kSpace.find(line[at - 1]) == std::string_view::npos) continue;
      line = line.substr(0, at);
      break;
    }
    const auto first = line.find_first_not_of(kSpace);
    if (first == std::string_view::npos) continue;
    line = line.substr(first, line.find_last_not_of(kSpace) - first + 1);
    if (std::string problem = glob_problem(line); !problem.empty()) return GlobProblem{number, std::move(problem)};
    globs.emplace_back(line);
  }
  return std::nullopt;
}

/// Reads a list file and appends its globs; what is wrong, with the file's name and the line at fault, if anything is.
inline std::optional<std::string> read_glob_list(const std::string& file, std::vector<std::string>& globs) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string text(kLongestList + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad())
    return "cannot read " + file + ": " + (errno != 0 ? std::strerror(errno) : "input error");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kLongestList) return file + ": a list of functions has at most 1 MiB";
  if (const auto problem = parse_glob_list(text, globs))
    return file + ":" + std::to_string(problem->line) + ": " + problem->message;
  return std::nullopt;
}

/// A count of instructions, 0 to kMostNumber.
inline std::optional<std::uint32_t> parse_min_instructions(std::string_view text) {
  std::uint32_t n = 0;
  return parse_number(text.data(), text.data() + text.size(), n) ? std::optional(n) : std::nullopt;
}

}  // namespace karst::format
