// SPDX-License-Identifier: MIT
// Opens a .karst file: bytes -> checked chunks -> model; events stay in the mapped file until
// a thread's calls are rebuilt.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/trace.h"
#include "reader/left_out.h"
#include "reader/model.h"
#include "reader/samples.h"
#include "reader/states.h"
#include "reader/stored_block.h"
#include "reader/usage.h"

namespace karst::reader {

/// An opened trace. Immutable after open; any thread may read it.
class Trace {
 public:
  /// Maps and checks the file. Damage costs the damaged parts alone and is listed in problems();
  /// an Error means that nothing could be read (missing, empty, foreign, future version).
  /// `known_sound`: who calls knows that the file is the same as one whose events' checksums were right; then they are
  /// not looked at again, which is most of the time that a large file takes.
  static Result<Trace> open(const std::filesystem::path& path, bool known_sound = false);
  /// The same from memory that outlives the Trace; `name` is used in messages.
  static Result<Trace> open_memory(std::span<const std::byte> bytes, std::string name);

  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) noexcept;
  ~Trace();

  const std::string& name() const;
  std::uint64_t file_size() const;
  /// All of the file, which others may write to: see BlockView.
  std::span<const std::byte> bytes() const;
  bool resolved() const;
  bool complete() const;  ///< has its end chunk
  bool growing() const;   ///< has none, as it is still recorded, or whoever did so was ended by force
  std::uint16_t minor_version() const;
  const std::vector<Process>& processes() const;
  const Clock& clock() const;
  const std::vector<SourceFile>& sources() const;
  /// Programs that could not be traced, as far as `karst run` saw them start.
  const std::vector<UntracedProgram>& untraced() const;
  const std::vector<Problem>& problems() const;
  /// The function of an event's id; for an unknown id a stand-in named `function#id`.
  const Function& function(const Process& process, std::uint32_t id) const;
  /// Right after it was opened, before anybody else looks: lets `fill` complete each process, as the names that a raw
  /// trace (not resolved()) lacks.
  void complete_processes(const std::function<void(Process&)>& fill);
  /// The same: leaves out what the first blocks of some threads say. Calls that were under way go on.
  void leave_out(const LeftOut& left_out);
  /// Whether something was left out so.
  bool is_part() const;
  /// Blocks of a thread in order of sequence.
  std::span<const StoredBlock> blocks(const Thread& thread) const;
  /// Reads their events. Good while the trace is open.
  EventReader event_reader() const;
  std::uint64_t event_count() const;
  /// To be asked when the blocks were looked at: whether the file is still as it was, and all events could be read.
  /// Error: others wrote to it meanwhile, or events are damaged; what was read fits nothing. Any thread may ask.
  Status unchanged() const;
  /// What threads did beside their calls; empty() when it was not recorded, its source() says why. Made at the first
  /// call, which takes a moment when there are millions of records.
  const States& states() const;
  /// What threads were sampled in; empty() when nothing was sampled.
  const SampleLog& samples() const;
  /// What processes and the machine used meanwhile; empty() when it was not read.
  const UsageLog& usage() const;

 private:
  struct Impl;
  explicit Trace(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Rebuilds the calls of one thread. Never fails: what does not fit is counted in Calls.
Calls rebuild_calls(const Trace& trace, const Thread& thread);
/// The same in the memory of `used`, calls that are needed no more: who looks at one thread after the other spares the
/// kernel most of its work.
Calls rebuild_calls(const Trace& trace, const Thread& thread, Calls used);

}  // namespace karst::reader
