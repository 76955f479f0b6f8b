// SPDX-License-Identifier: MIT
// The layouts are those of the kernel (fs/binfmt_elf.c): notes NT_PRSTATUS, one for each thread, the one that got the
// signal first; NT_SIGINFO; NT_FILE, the mapped files: their number, a page size, begin, end and place of each, names.
#include "collect/recover/core.h"

#include <sys/procfs.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string_view>

#include "binary/elf_file.h"
#include "sandbox/sandbox.h"

namespace karst::collect {
namespace {

constexpr std::size_t kMostSegments = std::size_t{1} << 20;
constexpr std::size_t kMostThreads = std::size_t{1} << 20;

/// The beginning of a note's content as a T; zero if it is shorter.
template <typename T>
T as(std::string_view content) {
  T value{};
  if (content.size() >= sizeof value) std::memcpy(&value, content.data(), sizeof value);
  return value;
}

void read_note(std::uint64_t type, std::string_view content, CoreFile& core) {
  if (type == NT_PRSTATUS && core.threads.size() < kMostThreads) {
    const auto status = as<elf_prstatus>(content);
    if (core.threads.empty() && !core.signal && status.pr_cursig != 0) core.signal = CoreSignal{status.pr_cursig, 0, 0};
    core.threads.push_back(status.pr_pid);
  } else if (type == NT_SIGINFO) {
    const auto info = as<siginfo_t>(content);
    if (info.si_signo != 0)
      core.signal = CoreSignal{info.si_signo, info.si_code, reinterpret_cast<std::uint64_t>(info.si_addr)};
  } else if (type == NT_FILE) {
    core.has_runtime = content.find("/libkarst.so") != std::string_view::npos;
  }
}

/// In the sandbox. An empty answer: it is no such core.
void work(int descriptor, sandbox::AnswerWriter& answer) {
  const auto elf = binary::ElfFile::borrowing(descriptor);
  if (!elf.is_x86_64() || elf.type() != ET_CORE) return;
  CoreFile core;
  for (const GElf_Phdr& segment : elf.segments(kMostSegments)) {
    if (segment.p_type == PT_NOTE)
      elf.for_each_note(segment, segment.p_filesz, [&core](const binary::ElfNote& note) {
        if (note.name.starts_with("CORE")) read_note(note.type, note.content, core);
      });
    if (segment.p_type == PT_LOAD && segment.p_filesz != 0)
      core.segments.push_back({segment.p_vaddr, segment.p_offset, segment.p_filesz});
  }
  answer.number(core.segments.size());
  for (const CoreFile::Segment& s : core.segments) {
    answer.number(s.address);
    answer.number(s.offset);
    answer.number(s.size);
  }
  answer.number(core.threads.size());
  for (const pid_t tid : core.threads) answer.number(static_cast<std::uint32_t>(tid));
  answer.number(core.signal ? 1 : 0);
  const CoreSignal signal = core.signal.value_or(CoreSignal{});
  answer.number(static_cast<std::uint32_t>(signal.number));
  answer.number(static_cast<std::uint32_t>(signal.code));
  answer.number(signal.address);
  answer.number(core.has_runtime ? 1 : 0);
}

}  // namespace

Result<CoreFile> read_core(int descriptor, const std::optional<sandbox::Credentials>& as) {
  sandbox::SandboxOptions options;
  options.as = as;
  options.keep = {descriptor};
  const auto bytes =
      sandbox::in_sandbox(options, [descriptor](sandbox::AnswerWriter& answer) { work(descriptor, answer); });
  if (!bytes) return bytes.error();
  if (bytes->empty()) return Error{"it is no core file of an x86-64 program"};
  sandbox::AnswerReader answer(*bytes);
  CoreFile core;
  core.segments.resize(answer.count(3 * sizeof(std::uint64_t)));
  for (CoreFile::Segment& s : core.segments) s = {answer.number(), answer.number(), answer.number()};
  core.threads.resize(answer.count(sizeof(std::uint64_t)));
  for (pid_t& tid : core.threads) tid = static_cast<pid_t>(answer.number());
  const bool has_signal = answer.number() != 0;
  CoreSignal signal;
  signal.number = static_cast<int>(answer.number());
  signal.code = static_cast<int>(answer.number());
  signal.address = answer.number();
  if (has_signal) core.signal = signal;
  core.has_runtime = answer.number() != 0;
  if (!answer.is_whole()) return Error{"its reader gave no sound answer"};
  return core;
}

}  // namespace karst::collect
