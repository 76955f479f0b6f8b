// SPDX-License-Identifier: MIT
// Work on files that a traced program names, in a process of its own with few rights.
//
// What a hostile or damaged module, debug file, source or perf map does to elfutils, libiberty, zstd or Zydis happens
// there: a crash, a hang, a truncated mapping (SIGBUS) or too much memory costs that one answer. The process is a fork:
// it knows what the caller knows, so only the answer is encoded, and that is checked like a file of a stranger.
//
// It has the rights of the traced program's user where we are root, no descriptor but its answer's, no arena, limits on
// time, memory and file size, no new privileges, and a seccomp filter: it can read files, and nothing else.
#pragma once
#include <fcntl.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "sandbox/credentials.h"

namespace karst::sandbox {

/// Set by a signal handler: lookups that are under way end, new ones are refused.
inline std::atomic<bool> stop_lookups{false};

/// What the work writes, in the sandbox: little-endian numbers, and texts behind their size.
class AnswerWriter {
 public:
  /// Keeps all of it.
  AnswerWriter() = default;
  explicit AnswerWriter(int fd) : fd_(fd) {}
  void number(std::uint64_t value);
  void text(std::string_view text);
  void text(std::span<const std::byte> bytes);
  bool flush();
  /// What is kept.
  std::span<const std::byte> bytes() const { return buffer_; }

 private:
  void put(const void* bytes, std::size_t size);
  int fd_ = -1;
  bool failed_ = false;
  std::vector<std::byte> buffer_;
};

/// Reads an answer, which may be anything. After the first value that is not there all are 0 or empty.
class AnswerReader {
 public:
  explicit AnswerReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::uint64_t number();
  /// Lies in the answer.
  std::span<const std::byte> bytes();
  std::string_view text();
  /// A number of things to come, each of which takes `size` bytes at least.
  std::uint64_t count(std::size_t size);
  /// All was there, and nothing is left.
  bool is_whole() const { return !failed_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

struct SandboxOptions {
  std::optional<Credentials> as{};           ///< none: our own rights
  std::size_t most = std::size_t{64} << 20;  ///< bytes of the answer
  std::vector<int> keep{};                   ///< descriptors that the work needs
  bool helper = false;                       ///< a second thread, for side_by_side() (sandbox_helper.h)
  std::chrono::seconds cpu_time{120};
  std::chrono::seconds patience{120};  ///< by the clock on the wall
};

/// Runs `work` in a sandbox; returns what it wrote. Error: what became of it instead, to be put behind the file's name.
/// Any thread may call it.
Result<std::vector<std::byte>> in_sandbox(const SandboxOptions& options,
                                          const std::function<void(AnswerWriter&)>& work);

/// A sandbox that stays, and keeps what it has read, to answer one question after another. Use from one thread.
class AskedSandbox {
 public:
  using Work = std::function<void(std::span<const std::byte> question, AnswerWriter& answer)>;

  static Result<AskedSandbox> start(const SandboxOptions& options, const Work& work);
  ~AskedSandbox();
  AskedSandbox(AskedSandbox&& other) noexcept;
  AskedSandbox& operator=(AskedSandbox&& other) noexcept;

  /// Error: there was no answer in time. It may come later, and is passed over then: a question that took too long may
  /// be asked again.
  Result<std::vector<std::byte>> ask(std::span<const std::byte> question, std::chrono::milliseconds patience);

 private:
  AskedSandbox(pid_t child, Descriptor answers, Descriptor questions, std::size_t most);
  void end();
  pid_t child_;  // 0: it has ended
  Descriptor answers_;
  Descriptor questions_;
  std::size_t most_;
  std::size_t late_ = 0;  // answers that nobody waits for any more
};

/// Opens a file to be read whose name somebody else chose: a regular one that lies on a file system for data. Nothing
/// else is opened, not even for a moment: no device, FIFO or socket, no file of /proc or /sys. Returns the descriptor,
/// or -errno; EINVAL for what is no such file. `flags`: O_NOFOLLOW, or 0.
int open_regular(const char* path, int flags = 0, int directory = AT_FDCWD);

}  // namespace karst::sandbox
