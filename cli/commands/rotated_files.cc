// SPDX-License-Identifier: MIT
#include "cli/commands/rotated_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/child_process.h"
#include "base/output_place.h"
#include "cli/text/text.h"
#include "format/options.h"
#include "format/trace.h"
#include "sandbox/sandbox.h"

namespace karst::cli {
namespace {

constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kLeastNs = 1'000'000'000;

/// The parts of a name: STEM-STAMP.karst, or STEM-STAMP-NUMBER.karst where several ended in one second.
struct Names {
  explicit Names(const std::string& newest) {
    const std::filesystem::path path(newest);
    stem = path.stem().string() + "-";
    extension = path.extension().string();
  }
  std::string name(const std::string& stamp, unsigned number) const {
    return stem + stamp + (number > 1 ? "-" + std::to_string(number) : std::string()) + extension;
  }
  /// What such names are in order by; nothing: it is no such name.
  std::optional<std::pair<std::string, unsigned>> order(std::string_view name) const {
    constexpr std::string_view kForm = "00000000T000000Z";
    if (!name.starts_with(stem) || !name.ends_with(extension) ||
        name.size() < stem.size() + kForm.size() + extension.size())
      return std::nullopt;
    name.remove_prefix(stem.size());
    name.remove_suffix(extension.size());
    const std::string_view stamp = name.substr(0, kForm.size());
    for (std::size_t i = 0; i < kForm.size(); ++i)
      if (kForm[i] == '0' ? std::isdigit(static_cast<unsigned char>(stamp[i])) == 0 : stamp[i] != kForm[i])
        return std::nullopt;
    name.remove_prefix(kForm.size());
    unsigned number = 1;
    if (!name.empty()) {
      if (name[0] != '-' || name.size() == 1 || name.size() > 6) return std::nullopt;
      number = 0;
      for (const char c : name.substr(1)) {
        if (std::isdigit(static_cast<unsigned char>(c)) == 0) return std::nullopt;
        number = number * 10 + static_cast<unsigned>(c - '0');
      }
    }
    return std::pair(std::string(stamp), number);
  }

  std::string stem;
  std::string extension;
};

std::string stamp_of(const timespec& time) {
  tm parts{};
  gmtime_r(&time.tv_sec, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts)};
}

bool is_trace(int directory, const std::string& name, struct stat& status) {
  const Descriptor file(sandbox::open_regular(name.c_str(), O_NOFOLLOW, directory));
  char magic[sizeof format::kFileMagic]{};
  return file && fstat(file.get(), &status) == 0 && read(file.get(), magic, sizeof magic) == sizeof magic &&
         std::memcmp(magic, format::kFileMagic, sizeof magic) == 0;
}

/// 0, or errno. Nothing that has the new name is replaced.
int rename_to_free(int directory, const std::string& from, const std::string& to) {
  if (renameat2(directory, from.c_str(), directory, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;  // file systems that cannot do it at once
  if (faccessat(directory, to.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  return renameat(directory, from.c_str(), directory, to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

void FileRotation::add_option(Command& command, std::string& text) {
  command
      .add_option("--rotate", text,
                  "With --all: begin another file when this one has SIZE (256M, 1G), or after TIME (10m, 1h). The one "
                  "before is whole by itself, and gets the time of its end into its name. Of those before only the "
                  "newest N stay (default: all of them)")
      .type_name("SIZE|TIME[:N]");
}

Result<FileRotation> FileRotation::parse(const std::string& text) {
  FileRotation rotation;
  if (text.empty()) return rotation;
  const std::string given = "--rotate " + printable(text);
  const std::size_t colon = text.find(':');
  const std::string when = text.substr(0, colon);
  if (colon != text.npos) {
    std::uint32_t keep = 0;
    const char* const end = text.data() + text.size();
    const auto [behind, error] = std::from_chars(text.data() + colon + 1, end, keep);
    if (error != std::errc() || behind != end || keep == 0)
      return Error{given + ": behind the colon stands how many files before this one stay, at least 1, like 1G:20"};
    rotation.keep = keep;
  }
  // 10m are minutes, 10M are mebibytes.
  const bool is_size = when.find_first_of("KMG") != when.npos;
  const auto time = parse_duration(when);
  if (is_size ? !format::parse_size(when.c_str(), 0, rotation.when.bytes) : !time)
    return Error{given + ": a size like 256M or 1G, or a time like 10m or 1h is needed"};
  if (!is_size) rotation.when.time = std::chrono::nanoseconds(*time);
  if (is_size ? rotation.when.bytes < kLeastBytes : *time < kLeastNs)
    return Error{given + " is too often: at least 1M or 1s is needed"};
  return rotation;
}

void RotatedFiles::serve(collect::GrowingTrace::Events& events) {
  events.begins = [this, begins = std::move(events.begins)] {
    // What a former run has left: one that was killed has not given its last file another name.
    if (const Status aside = put_aside(); !aside) say(aside.error().message);
    remove_oldest();
    if (begins) begins();
  };
  events.next = [this]() -> Result<writing::TraceWriter> {
    if (const Status aside = put_aside(); !aside) return aside.error();
    return writing::TraceWriter::create(newest_);
  };
  events.whole = [this] { add_names(); };
}

Status RotatedFiles::put_aside() {
  const auto place = OutputPlace::find(newest_);
  if (!place || place->there() != OutputPlace::There::kFile) return Unit{};
  const int directory = place->directory().get();
  struct stat status {};
  if (!is_trace(directory, place->name(), status)) return Unit{};  // not ours
  const Names names(place->name());
  const std::string stamp = stamp_of(status.st_mtim);
  constexpr unsigned kMost = 9999;
  for (unsigned number = 1; number <= kMost; ++number) {
    const std::string name = names.name(stamp, number);
    const int error = rename_to_free(directory, place->name(), name);
    if (error == EEXIST) continue;
    if (error != 0) return Error{"cannot rename " + printable(newest_) + " to " + name + ": " + std::strerror(error)};
    last_ = (std::filesystem::path(newest_).parent_path() / name).string();
    return Unit{};
  }
  return Error{"cannot rename " + printable(newest_) + ": too many files ended in one second"};
}

void RotatedFiles::remove_oldest() const {
  if (!keep_) return;
  const auto place = OutputPlace::find(newest_);
  if (!place) return;
  const Names names(std::filesystem::path(newest_).filename().string());
  const int directory = place->directory().get();
  const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
                                                 closedir);
  if (!list) return;
  std::vector<std::pair<std::pair<std::string, unsigned>, std::string>> files;
  while (const dirent* entry = readdir(list.get()))
    if (auto order = names.order(entry->d_name)) files.emplace_back(std::move(*order), entry->d_name);
  std::sort(files.begin(), files.end());
  if (files.size() <= *keep_) return;
  files.resize(files.size() - *keep_);
  for (const auto& [order, name] : files) {
    struct stat status {};
    if (is_trace(directory, name, status)) unlinkat(directory, name.c_str(), 0);
  }
}

// In a process of its own, at a low priority, as it reads debug information.
void RotatedFiles::add_names() const {
  ChildProgram program{.file = "/proc/self/exe", .words = {"karst", "resolve", last_}};
  if (!with_source_) program.words.emplace_back("--no-source");
  program.own_group = true;  // Ctrl-C is meant for the program
  auto resolver = ChildProcess::start(program);
  if (!resolver) return;  // the names are looked up by who reads it
  constexpr int kLow = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(resolver->number()), kLow);
  resolver->wait();
}

void RotatedFiles::tell(collect::GrowingTrace& trace) const {
  trace.finish_older();
  for (const reader::Problem& p : trace.problems()) say(p.message);
  if (trace.files() == 0) return;
  remove_oldest();  // where the last one has begun with no event
  const bool some_are_gone = keep_ && *keep_ < trace.files();
  say(plural(trace.files(), "file") + " before it, the last of which is " + printable(last_) +
      (some_are_gone ? "; the newest " + std::to_string(*keep_) + " of them stay" : std::string()));
}

}  // namespace karst::cli
