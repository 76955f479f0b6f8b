// SPDX-License-Identifier: MIT
#include "cli/input/foreign.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/descriptor.h"
#include "cli/command.h"
#include "cli/text/text.h"
#include "import/import_file.h"
#include "reader/foreign_files.h"

namespace karst::cli {
namespace {

/// A file as it was when it was imported: device, inode, bytes, time of change.
using FileState = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;

FileState state_of(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

/// Traces that were made, for as long as the process lives: a server opens its files again and again.
Result<Descriptor> trace_of(const std::filesystem::path& path) {
  static std::mutex mutex;
  static std::map<FileState, Descriptor> made;
  const std::lock_guard lock(mutex);
  const FileState state = state_of(path);
  if (const auto found = made.find(state); found != made.end())
    return Descriptor(::fcntl(found->second.get(), F_DUPFD_CLOEXEC, 3));
  auto imported = importing::import_file(path);
  if (!imported) return imported.error();
  if (!imported->has_value()) return Descriptor();
  const importing::ImportedFile& file = **imported;
  say_imported(fmt::format("{} is of the format {}", path.string(), file.format), file.summary);
  Descriptor own(::fcntl(file.trace.get(), F_DUPFD_CLOEXEC, 3));
  made.emplace(state, std::move((*imported)->trace));
  return own;
}

}  // namespace

void open_foreign_files() { reader::read_foreign_files_by(trace_of); }

void say_imported(const std::string& what, const importing::Summary& summary) {
  std::string has = fmt::format("{} of {} in {}, {}", plural(summary.calls, "call"), plural(summary.threads, "thread"),
                                plural(summary.processes, "process", "es"), plural(summary.notes, "note"));
  if (summary.samples != 0) has += ", " + plural(summary.samples, "sample");
  say(fmt::format("{}: {}", what, has));
  if (summary.open != 0) say(fmt::format("the end of {} is not in it", plural(summary.open, "call")));
  if (summary.aside != 0)
    say(fmt::format("{} overlap others of their thread; they are in threads of their own",
                    plural(summary.aside, "call")));
  for (const std::string& remark : summary.remarks) say(remark);
  for (const auto& [kind, count] : summary.left_out) say(fmt::format("left out: {} {}", count_text(count), kind));
}

}  // namespace karst::cli
