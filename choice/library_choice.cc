// SPDX-License-Identifier: MIT
// A file's name is longer than what people know a library by: each version number behind the last dot may be left out.
#include "choice/library_choice.h"

#include <fnmatch.h>

#include <algorithm>

namespace karst::choice {
namespace {

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool name_matches(const std::string& pattern, std::string name) {
  while (true) {
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
    const auto dot = name.rfind('.');
    if (dot == std::string::npos || name.find_first_not_of("0123456789", dot + 1) != std::string::npos) return false;
    name.resize(dot);
  }
}

}  // namespace

bool is_below_runtime(std::string_view path) {
  constexpr std::string_view kNever[] = {"libc.so",   "libc-",      "ld-linux", "ld-",    "libkarst.so",
                                         "libkarst-", "libpthread", "libdl.so", "libdl-", "linux-vdso"};
  const std::string_view name = name_of(path);
  return std::any_of(std::begin(kNever), std::end(kNever),
                     [&](std::string_view never) { return name.starts_with(never); });
}

Result<LibraryChoice> LibraryChoice::parse(std::string_view text) {
  constexpr const char* kForm = "a library's file and functions of it are written as 'libssl*' or 'libssl*:SSL_*'";
  LibraryChoice choice;
  choice.text = std::string(text);
  const auto colon = text.find(':');
  choice.files = std::string(text.substr(0, colon));
  if (choice.files.empty()) return Error{"'" + choice.text + "': " + kForm};
  if (choice.files.find('/') != std::string::npos)
    return Error{"'" + choice.text + "': the name of a library's file is needed, without its directories: '" +
                 std::string(name_of(choice.files)) + "'"};
  if (is_below_runtime(choice.files) || choice.files == "libc")
    return Error{"'" + choice.text + "': " + kWhyNeverPatched};
  if (colon == std::string_view::npos) return choice;
  choice.functions = std::string(text.substr(colon + 1));
  if (choice.functions.empty() || choice.functions.find('/') != std::string::npos)
    return Error{"'" + choice.text + "': " + kForm};
  if (const auto globs = GlobSet::compile({choice.functions}); !globs)
    return Error{"'" + choice.text + "': " + globs.error().message};
  return choice;
}

bool LibraryChoice::means(std::string_view path) const { return !is_below_runtime(path) && matches(path); }

bool LibraryChoice::matches(std::string_view path) const { return name_matches(files, std::string(name_of(path))); }

NamedOfLibrary named_of(const std::vector<LibraryChoice>& choices, std::string_view path) {
  NamedOfLibrary named;
  for (const LibraryChoice& choice : choices) {
    if (!choice.means(path)) continue;
    if (choice.functions.empty())
      named.whole = true;
    else
      named.globs.push_back(choice.functions);
  }
  return named;
}

}  // namespace karst::choice
