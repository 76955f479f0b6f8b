// SPDX-License-Identifier: MIT
#include "symbols/sources.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/descriptor.h"
#include "format/file_identity.h"
#include "sandbox/sandbox.h"

namespace karst::symbols {
namespace {

/// Without trailing slashes, so that FROM may be written either way; the root is empty.
std::string without_slashes(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

enum class Outcome { kRead, kMissing, kRefused };

/// Reads a file into `text`; `reason` says why it did not. `built_by`: as of reader::Module.
Outcome read_text(const std::string& path, std::uint64_t built_by, std::size_t limit, std::string& text,
                  std::string& reason) {
  const Descriptor file(sandbox::open_regular(path.c_str()));
  if (!file) {
    const int error = -file.get();
    reason = error == EINVAL ? "not a regular file" : std::strerror(error);
    return error == ENOENT || error == ENOTDIR ? Outcome::kMissing : Outcome::kRefused;
  }
  Outcome outcome = Outcome::kRefused;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    reason = std::strerror(errno);
  } else if (built_by != 0 && format::file_identity(status).modified_ns > built_by) {
    reason = "it was written to after the program was built, so its lines are not those that ran";
  } else if (static_cast<std::size_t>(status.st_size) > limit) {
    reason = "larger than " + std::to_string(limit) + " bytes";
  } else {
    text.resize(static_cast<std::size_t>(status.st_size));
    std::size_t got = 0;
    while (got < text.size()) {  // a file that grows or shrinks meanwhile gives what it had
      ssize_t n = ::read(file.get(), text.data() + got, text.size() - got);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    text.resize(got);
    if (text.find('\0') != std::string::npos) {
      reason = "not a text file";
    } else {
      outcome = Outcome::kRead;
    }
  }
  return outcome;
}

/// Paths and problems beside the text.
constexpr std::size_t kMostElse = std::size_t{64} << 20;

/// Of a source file.
struct BuiltInto {
  std::uint64_t built_by = 0;    ///< when the first module of it was built
  std::string_view module = {};  ///< the path of one of them
};
using Paths = std::map<std::string_view, BuiltInto>;

/// Where else a file may be: in the module's own directory, by as much of the end of its path as leads somewhere.
std::vector<std::string> places_beside(std::string_view path, std::string_view module) {
  constexpr std::size_t kMostParts = 4;
  std::vector<std::string> places;
  if (!module.starts_with('/')) return places;
  const std::string directory(module.substr(0, module.rfind('/') + 1));
  while (path.starts_with("./")) path.remove_prefix(2);
  std::size_t from = path.size();
  for (std::size_t part = 0; part < kMostParts && from != std::string_view::npos; ++part) {
    from = from == 0 ? std::string_view::npos : path.rfind('/', from - 1);
    const std::string_view end = path.substr(from == std::string_view::npos ? 0 : from + 1);
    if (!end.empty() && !end.starts_with('/')) places.insert(places.begin(), directory + std::string(end));
  }
  return places;
}

/// At its path, or beside the module. There it is read only if it is known to be older than that.
Outcome find_text(const std::string& path, const BuiltInto& into, std::size_t limit, std::string& text,
                  std::string& reason) {
  // A relative path would be looked for in whatever directory we happen to be in.
  const Outcome at_path = path.front() == '/' ? read_text(path, into.built_by, limit, text, reason) : Outcome::kMissing;
  if (at_path != Outcome::kMissing || into.built_by == 0) return at_path;
  for (const std::string& place : places_beside(path, into.module))
    if (read_text(place, into.built_by, limit, text, reason) == Outcome::kRead) return Outcome::kRead;
  return Outcome::kMissing;
}

/// In the sandbox.
Sources read_sources(const Paths& paths, const SourceLimits& limits) {
  Sources sources;
  std::size_t total = 0;
  reader::Problem missing{"", 0};
  reader::Problem beyond{"", 0};
  for (const auto& [view, into] : paths) {
    std::string path(view);
    reader::SourceFile file{path, {}};
    std::string reason;
    const Outcome outcome = find_text(path, into, limits.file_bytes, file.text, reason);
    if (outcome == Outcome::kMissing) {
      if (missing.count++ == 0) missing.message = path;
    } else if (outcome == Outcome::kRefused) {
      sources.problems.push_back({fmt::format("source text of {} is left out: {}", path, reason), 1});
    } else if (file.text.size() > limits.total_bytes - total) {
      if (beyond.count++ == 0) beyond.message = path;
    } else {
      total += file.text.size();
      sources.files.push_back(std::move(file));
    }
  }
  if (missing.count != 0) {
    missing.message = "source files that are not here (the first: " + missing.message +
                      "); if they have moved, say where with --map-path FROM=TO";
    sources.problems.push_back(std::move(missing));
  }
  if (beyond.count != 0) {
    beyond.message = "source files left out because all together exceed " + std::to_string(limits.total_bytes) +
                     " bytes (the first: " + beyond.message + ")";
    sources.problems.push_back(std::move(beyond));
  }
  return sources;
}

}  // namespace

Result<PathMapping> PathMapping::parse(std::string_view text) {
  std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return Error{"bad path mapping \"" + std::string(text) +
                 "\": write FROM=TO, such as /build/src=/home/me/src, where FROM is as the debug information has it"};
  }
  return PathMapping{without_slashes(text.substr(0, equals)), without_slashes(text.substr(equals + 1))};
}

std::string map_path(std::string_view path, std::span<const PathMapping> mappings) {
  for (const PathMapping& mapping : mappings) {
    if (path.starts_with(mapping.from) && (path.size() == mapping.from.size() || path[mapping.from.size()] == '/')) {
      return mapping.to + std::string(path.substr(mapping.from.size()));
    }
  }
  return std::string(path);
}

Sources collect_sources(std::span<const reader::Process> processes, const SourceLimits& limits,
                        const std::optional<sandbox::Credentials>& as) {
  Paths paths;
  for (const reader::Process& process : processes) {
    for (const reader::Function& function : process.functions) {
      // What an interpreter calls `<frozen os>` or `<string>` is no file.
      if (function.file.empty() || function.file.starts_with('<') || function.filtered) continue;
      BuiltInto into;
      if (function.module < process.modules.size()) {
        const reader::Module& module = process.modules[function.module];
        into = {module.built_by_ns, module.path};
      }
      BuiltInto& first = paths.try_emplace(function.file, into).first->second;
      if (into.built_by != 0 && (first.built_by == 0 || into.built_by < first.built_by)) first = into;
    }
  }
  Sources sources;
  if (paths.empty()) return sources;
  const auto answer =
      sandbox::in_sandbox({.as = as, .most = limits.total_bytes + kMostElse}, [&](sandbox::AnswerWriter& out) {
        const Sources found = read_sources(paths, limits);
        out.number(found.problems.size());
        for (const reader::Problem& problem : found.problems) {
          out.text(problem.message);
          out.number(problem.count);
        }
        out.number(found.files.size());
        for (const reader::SourceFile& file : found.files) {
          out.text(file.path);
          out.text(file.text);
        }
      });
  if (!answer) {
    sources.problems.push_back({"source text is left out: " + answer.error().message, paths.size()});
    return sources;
  }
  sandbox::AnswerReader in(*answer);
  for (std::uint64_t i = in.count(2 * sizeof(std::uint64_t)); i != 0; --i) {
    std::string message(in.text());
    sources.problems.push_back({std::move(message), in.number()});
  }
  for (std::uint64_t i = in.count(2 * sizeof(std::uint64_t)); i != 0; --i) {
    const std::string_view path = in.text();
    const std::string_view text = in.text();
    // What was asked for, each once.
    if (paths.erase(path) != 0) sources.files.push_back({std::string(path), std::string(text)});
  }
  return sources;
}

}  // namespace karst::symbols
