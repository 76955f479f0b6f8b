// SPDX-License-Identifier: MIT
#include "import/uftrace_files.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/descriptor.h"
#include "import/text.h"
#include "sandbox/sandbox.h"

namespace karst::importing {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 30;
constexpr std::size_t kMostDemangled = 1024;  // bytes of a mangled name; longer ones may say very long names

/// Calls `visit` with each line.
template <typename Visit>
void each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The next word, which is taken from the line.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::string demangled(std::string_view name) {
  const std::string mangled(name);
  if (!name.starts_with("_Z") || name.size() > kMostDemangled) return std::string(cut(name, kMostName));
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  return std::string(cut(text != nullptr ? text.get() : std::string_view(mangled), kMostName));
}

/// "4482.112435429" in ns.
std::uint64_t stamp_in(std::string_view text) {
  constexpr std::uint64_t kNsInSecond = 1'000'000'000, kMostSeconds = 4'600'000'000;
  const std::size_t dot = text.find('.');
  const auto seconds = number_in<std::uint64_t>(text.substr(0, dot));
  const auto ns =
      dot == std::string_view::npos ? std::optional<std::uint64_t>(0) : number_in<std::uint64_t>(text.substr(dot + 1));
  if (!seconds || !ns || *seconds > kMostSeconds || *ns >= kNsInSecond) return 0;
  return *seconds * kNsInSecond + *ns;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::optional<std::string> read_member(int directory, const std::string& name, std::size_t most) {
  if (name.empty() || name.find('/') != std::string::npos) return std::nullopt;
  const Descriptor file(sandbox::open_regular(name.c_str(), O_NOFOLLOW, directory));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) > most) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t size = 0;
  for (ssize_t n = 1; n > 0 && size < bytes.size(); size += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
    n = ::pread(file.get(), bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
  bytes.resize(size);
  return bytes;
}

UftraceSymbols::UftraceSymbols(std::string_view text) {
  static constexpr std::string_view kPath = "# path name: ";
  each_line(text, [this](std::string_view line) {
    if (line.starts_with(kPath)) path_ = line.substr(kPath.size());
    if (line.starts_with('#')) return;
    const auto address = number_in<std::uint64_t>(take_word(line), 16);
    const std::string_view type = take_word(line);
    if (!address || type.size() != 1) return;
    line.remove_prefix(std::min<std::size_t>(1, line.size()));
    const bool is_function = std::string_view("tTwWPiu").find(type) != std::string_view::npos;
    symbols_.push_back({*address, is_function ? std::string(line) : std::string()});
  });
  std::stable_sort(symbols_.begin(), symbols_.end(),
                   [](const Symbol& a, const Symbol& b) { return a.begin < b.begin; });
}

std::string_view UftraceSymbols::name_at(std::uint64_t offset) const {
  const auto behind = std::upper_bound(symbols_.begin(), symbols_.end(), offset,
                                       [](std::uint64_t at, const Symbol& symbol) { return at < symbol.begin; });
  return behind == symbols_.begin() ? std::string_view() : std::prev(behind)->name;
}

UftraceSession::UftraceSession(int directory, const std::string& sid) : directory_(directory) {
  const auto text = read_member(directory, "sid-" + sid + ".map", kMostText);
  std::map<std::string, std::uint64_t, std::less<>> bases;
  each_line(text.value_or(""), [&](std::string_view line) {
    const std::string_view range = take_word(line);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const auto begin = number_in<std::uint64_t>(range.substr(0, dash), 16);
    const auto end = number_in<std::uint64_t>(range.substr(std::min(dash + 1, range.size())), 16);
    for (int skipped = 0; skipped < 4; ++skipped) take_word(line);  // rights, offset, device, inode
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    constexpr std::string_view kBuildId = " build-id:";
    const std::size_t id = line.rfind(kBuildId);
    const std::string path(line.substr(0, id));
    if (!begin || !end || *begin >= *end || !path.starts_with('/')) return;
    const std::string_view build_id = id == std::string_view::npos ? "" : line.substr(id + kBuildId.size());
    const std::uint64_t base = bases.emplace(path, *begin).first->second;
    modules_.insert_or_assign(*begin, Module{*end, base, path, std::string(build_id), {}, false});
  });
}

// Modules of the same name have the begin of their build-id in the symbols' name.
void UftraceSession::find_symbols(Module& module) {
  module.was_looked_for = true;
  const std::string name(base_name(module.path));
  for (const std::string& file : {name + ".sym", name + "-" + module.build_id.substr(0, 4) + ".sym"}) {
    const auto text = read_member(directory_, file, kMostText);
    if (!text) continue;
    UftraceSymbols symbols(*text);
    if (!symbols.path().empty() && symbols.path() != module.path) continue;
    module.symbols = std::move(symbols);
    return;
  }
}

std::string UftraceSession::name_at(std::uint64_t address) {
  const auto behind = modules_.upper_bound(address);
  if (behind == modules_.begin() || std::prev(behind)->second.end <= address) return fmt::format("{:#x}", address);
  Module& module = std::prev(behind)->second;
  if (!module.was_looked_for) find_symbols(module);
  const std::uint64_t offset = address - module.base;
  const std::string_view name = module.symbols ? module.symbols->name_at(offset) : std::string_view();
  return name.empty() ? fmt::format("{}+{:#x}", cut(base_name(module.path), kMostName), offset) : demangled(name);
}

UftraceTasks::UftraceTasks(std::string_view text) {
  each_line(text, [this](std::string_view line) {
    const std::string_view kind = take_word(line);
    std::map<std::string_view, std::string_view> fields;
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
      const std::size_t equals = std::min(word.find('='), word.size());
      fields[word.substr(0, equals)] = word.substr(std::min(equals + 1, word.size()));
      if (word.starts_with("exename=")) {  // it may have spaces
        const std::string_view rest(word.data(), static_cast<std::size_t>(line.data() + line.size() - word.data()));
        fields["exename"] = rest.substr(8);
        break;
      }
    }
    const auto pid = number_in<std::uint32_t>(fields["pid"]);
    if (!pid) return;
    if (kind == "TASK") tasks.push_back({number_in<std::uint32_t>(fields["tid"]).value_or(*pid), *pid});
    if (kind == "FORK") {
      tasks.push_back({*pid, *pid});
      if (const auto parent = number_in<std::uint32_t>(fields["ppid"])) parents[*pid] = *parent;
    }
    std::string_view executable = fields["exename"];
    if (executable.size() >= 2 && executable.starts_with('"') && executable.ends_with('"'))
      executable = executable.substr(1, executable.size() - 2);
    if (kind == "SESS")
      execs[*pid].push_back({stamp_in(fields["timestamp"]), std::string(fields["sid"]), std::string(executable)});
  });
  for (auto& [pid, list] : execs)
    std::stable_sort(list.begin(), list.end(), [](const UftraceExec& a, const UftraceExec& b) { return a.ns < b.ns; });
}

}  // namespace karst::importing
