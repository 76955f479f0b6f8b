// SPDX-License-Identifier: MIT
#include "toolchain/request.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "format/filter_list.h"
#include "toolchain/response_file.h"

namespace karst::toolchain {
namespace {

/// `--karst-NAME=VALUE`; a value is not given as a word of its own, so that what passes arguments on (libtool, CMake)
/// cannot tear them apart.
struct OwnOption {
  std::string_view name;
  std::string_view value;
  bool has_value = false;
};

OwnOption split(std::string_view argument) {
  const auto equals = argument.find('=');
  if (equals == std::string_view::npos) return {argument, {}, false};
  return {argument.substr(0, equals), argument.substr(equals + 1), true};
}

Status add_list(std::string_view kind, std::string_view file, std::vector<std::string>& entries) {
  std::vector<std::string> globs;
  if (auto problem = format::read_glob_list(std::string(file), globs)) return Error{std::move(*problem)};
  for (const std::string& glob : globs) entries.push_back(std::string(kind) + "=" + glob);
  return Unit{};
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status apply(const OwnOption& option, Request& request) {
  const auto name = option.name.substr(kOwnPrefix.size());
  const std::string whole = std::string(option.name) + (option.has_value ? "=" + std::string(option.value) : "");
  if (name == "link" && !option.has_value) {
    request.with_runtime = true;
    return Unit{};
  }
  if (name == "method") {
    if (option.value == "sled") {
      request.method = Method::kSled;
    } else if (option.value == "finstrument") {
      request.method = Method::kFinstrument;
    } else if (option.value == "finstrument-after-inlining") {
      request.method = Method::kFinstrumentAfterInlining;
    } else {
      return Error{whole + ": the methods are sled, finstrument and finstrument-after-inlining"};
    }
    return Unit{};
  }
  if (name == "threshold") {
    if (!is_number(option.value)) return Error{whole + ": a number of instructions is needed"};
    request.threshold = option.value;
    request.threshold_given = true;
    return Unit{};
  }
  if (name == "no-trace" || name == "only") {
    if (option.value.empty()) return Error{whole + ": a file is needed, " + std::string(option.name) + "=FILE"};
    return add_list(name, option.value, request.lists);
  }
  if (name == "min-instructions") {
    const auto count = format::parse_min_instructions(option.value);
    if (!count) return Error{whole + ": a number of instructions is needed, at most 1000000"};
    request.lists.push_back("min-instructions=" + std::to_string(*count));
    return Unit{};
  }
  return Error{whole +
               ": no such option; there are --karst-link, --karst-method=, --karst-threshold=, --karst-no-trace=, "
               "--karst-only= and --karst-min-instructions="};
}

constexpr int kDeepest = 8;  // files that name files

/// The words of `@FILE` if there are options of ours in it, which the compiler must not see; then it gets the other
/// words in the file's place. Files without them stay as they are.
std::optional<std::vector<std::string>> words_with_own_options(const std::string& argument, int depth) {
  if (argument.size() < 2 || argument[0] != '@' || depth >= kDeepest) return std::nullopt;
  auto words = read_response_file(argument.substr(1));
  if (!words) return std::nullopt;
  const bool own = std::any_of(words->begin(), words->end(), [depth](const std::string& word) {
    return word.starts_with(kOwnPrefix) || words_with_own_options(word, depth + 1).has_value();
  });
  return own ? std::move(words) : std::nullopt;
}

Status add(const std::vector<std::string>& arguments, Request& request, int depth) {
  for (const std::string& argument : arguments) {
    if (argument.starts_with(kOwnPrefix)) {
      if (Status done = apply(split(argument), request); !done) return done;
    } else if (const auto words = words_with_own_options(argument, depth)) {
      if (Status done = add(*words, request, depth + 1); !done) return done;
    } else {
      request.rest.push_back(argument);
    }
  }
  return Unit{};
}

}  // namespace

Result<Request> parse_request(const std::vector<std::string>& arguments) {
  Request request;
  if (const Status done = add(arguments, request, 0); !done) return done.error();
  return request;
}

}  // namespace karst::toolchain
