// SPDX-License-Identifier: MIT
// The sandbox answers with what became of the file: kUnknown; kFailed and why; kMade, the format and the summary.
#include "import/import_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "import/foreign_bytes.h"
#include "import/refused.h"
#include "import/xray_names.h"
#include "sandbox/sandbox.h"

namespace karst::importing {
namespace {

using sandbox::AnswerReader;
using sandbox::AnswerWriter;

enum Outcome : std::uint64_t { kUnknown, kFailed, kMade };

constexpr std::chrono::seconds kPatience{900};  // 4 GiB take a minute
constexpr std::size_t kStartBytes = std::size_t{64} << 10;

const Format* format_of(std::string_view bytes) {
  const auto all = formats();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Format& format) { return format.may_be(bytes); });
  return found == all.end() ? nullptr : &*found;
}

/// Whether a regular file is worth a sandbox. Looks at how it begins.
bool may_be_known(int file) {
  std::string start(kStartBytes, '\0');
  const ssize_t n = ::pread(file, start.data(), start.size(), 0);
  start.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  constexpr std::string_view kGzip = "\x1f\x8b";
  return start.starts_with(kGzip) || format_of(start) != nullptr || why_refused(start);
}

void put_summary(const Summary& summary, AnswerWriter& answer) {
  for (const std::uint64_t number :
       {summary.processes, summary.threads, summary.calls, summary.notes, summary.samples, summary.open, summary.aside})
    answer.number(number);
  answer.number(summary.left_out.size());
  for (const auto& [what, count] : summary.left_out) {
    answer.text(what);
    answer.number(count);
  }
  answer.number(summary.remarks.size());
  for (const std::string& remark : summary.remarks) answer.text(remark);
}

Summary summary_in(AnswerReader& answer) {
  Summary summary;
  for (std::uint64_t* const number : {&summary.processes, &summary.threads, &summary.calls, &summary.notes,
                                      &summary.samples, &summary.open, &summary.aside})
    *number = answer.number();
  constexpr std::size_t kLeast = 16;  // a size and a number
  for (std::uint64_t left = answer.count(kLeast); left != 0; --left) {
    const std::string what(answer.text());
    summary.left_out[what] = answer.number();
  }
  constexpr std::size_t kLeastText = 8;
  for (std::uint64_t left = answer.count(kLeastText); left != 0; --left) summary.remarks.emplace_back(answer.text());
  return summary;
}

/// By pwrite(), which a sandbox allows.
bool write_all(int file, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::pwrite(file, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

void fail(AnswerWriter& answer, std::string_view why) {
  answer.number(kFailed);
  answer.text(why);
}

/// Writes the trace of what was imported, and tells of it.
void answer_with(Result<ForeignTrace> foreign, const char* format, std::size_t expected, int trace,
                 AnswerWriter& answer) {
  if (!foreign) return fail(answer, foreign.error().message);
  std::vector<std::byte> made;
  made.reserve(expected);  // what is not used is never memory
  auto writer = writing::TraceWriter::to_memory(made);
  writer.pack_events();
  const auto summary = write_trace(std::move(*foreign), writer);
  if (!summary) return fail(answer, summary.error().message);
  if (const auto done = writer.finish(); !done) return fail(answer, done.error().message);
  if (!write_all(trace, made)) return fail(answer, std::string("its trace has no room: ") + std::strerror(errno));
  answer.number(kMade);
  answer.text(format);
  put_summary(*summary, answer);
}

/// Where the names of functions come from that the file has by number alone.
struct NameSource {
  std::filesystem::path program;
  bool is_said = false;  ///< by the user; else it may not be there
};

Status add_names(ForeignTrace& trace, const NameSource& source) {
  if (!has_sleds(trace)) {
    if (source.is_said) return Error{"its functions have names, so no program is needed for them"};
    return Unit{};
  }
  const Status named = source.program.empty() ? Status(Error{"nothing says which program wrote it"})
                                              : name_by_program(trace, source.program);
  if (named) return Unit{};
  if (source.is_said)
    return Error{fmt::format("cannot take names of {}: {}", source.program.string(), named.error().message)};
  trace.remarks.push_back(
      fmt::format("its functions are numbers, as {}; 'karst import FILE --program PROGRAM' takes names of the program",
                  source.program.empty() ? named.error().message
                                         : fmt::format("{}: {}", source.program.string(), named.error().message)));
  return Unit{};
}

/// In the sandbox.
void import_file_into(int file, int trace, const NameSource& names, AnswerWriter& answer) {
  const auto bytes = ForeignBytes::read(file);
  if (!bytes) return fail(answer, bytes.error().message);
  const Format* const format = format_of(bytes->view());
  if (format == nullptr) {
    const auto why = why_refused(bytes->view());
    return why ? fail(answer, *why) : answer.number(kUnknown);
  }
  auto foreign = format->importer(bytes->view());
  if (!bytes->is_whole()) return fail(answer, "the file became shorter while it was read");
  if (foreign)
    if (const auto named = add_names(*foreign, names); !named) return fail(answer, named.error().message);
  answer_with(std::move(foreign), format->name, bytes->view().size() / 4, trace, answer);
}

/// In the sandbox.
void import_directory_into(int directory, int trace, AnswerWriter& answer) {
  for (const DirectoryFormat& format : directory_formats())
    if (format.may_be(directory)) return answer_with(format.importer(directory), format.name, 0, trace, answer);
  answer.number(kUnknown);
}

}  // namespace

Result<std::optional<ImportedFile>> import_file(const std::filesystem::path& path,
                                                const std::filesystem::path& program) {
  const auto refuse = [&](std::string_view why) {
    return Error{fmt::format("cannot import {}: {}", path.string(), why)};
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return Error{fmt::format("cannot open {}: {}", path.string(), std::strerror(errno))};
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return refuse(std::strerror(errno));
  const bool is_directory = S_ISDIR(info.st_mode);
  if (S_ISREG(info.st_mode) && !may_be_known(file.get())) return std::optional<ImportedFile>();
  if (is_directory && !program.empty()) return refuse("its functions have names, so no program is needed for them");
  const NameSource names{program.empty() ? program_beside(path) : program, !program.empty()};
  ImportedFile made;
  made.trace = Descriptor(::memfd_create("karst-imported", MFD_CLOEXEC));
  if (!made.trace) return refuse(std::strerror(errno));
  sandbox::SandboxOptions options;
  options.as = sandbox::Credentials::of_owner(info.st_uid, info.st_gid);
  options.keep = {file.get(), made.trace.get()};
  options.cpu_time = options.patience = kPatience;
  const auto answer = sandbox::in_sandbox(options, [&](AnswerWriter& out) {
    if (is_directory)
      import_directory_into(file.get(), made.trace.get(), out);
    else
      import_file_into(file.get(), made.trace.get(), names, out);
  });
  if (!answer) return refuse(answer.error().message);
  AnswerReader in(*answer);
  const std::uint64_t outcome = in.number();
  if (outcome == kUnknown) return std::optional<ImportedFile>();
  if (outcome == kFailed) return refuse(in.text());
  made.format = in.text();
  made.summary = summary_in(in);
  if (outcome != kMade || !in.is_whole()) return refuse("its reader's answer is damaged");
  return std::optional(std::move(made));
}

std::string format_list() {
  std::string list;
  for (const DirectoryFormat& format : directory_formats())
    list += fmt::format("  {:<12}{}\n", format.name, format.description);
  for (const Format& format : formats()) list += fmt::format("  {:<12}{}\n", format.name, format.description);
  return list;
}

}  // namespace karst::importing
