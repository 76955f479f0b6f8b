// SPDX-License-Identifier: MIT
// How the program's process is made and becomes the program.
//
// It is forked (or is this very process, with `takes_place`), and waits there until the recording of its states and
// samples has begun. Then it takes its user's rights and its environment, with LD_PRELOAD and KARST_OPTIONS in it, and
// executes the program. What it cannot do it says by a pipe, which a program that is executed closes.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "collect/launch/heritage.h"
#include "collect/launch/launch.h"
#include "collect/launch/waiting_signals.h"
#include "format/session.h"

namespace karst::collect {

/// Of one program; both arguments must outlive it. If this goes before let_begin(), the process ends and is waited for.
class ProgramStart {
 public:
  ProgramStart(const LaunchOptions& options, const WaitingSignals& signals) : options_(options), signals_(signals) {}
  ~ProgramStart();
  ProgramStart(const ProgramStart&) = delete;
  ProgramStart& operator=(const ProgramStart&) = delete;

  /// Makes the process. In it, this never returns. Error: there can be none, or no environment for it.
  Status make(const format::SessionKey& session);
  /// Its number, once it was made.
  pid_t process() const { return process_; }
  /// Lets it become the program, and waits until it has. Error: why it could not.
  Status let_begin();

 private:
  /// What the process could not do before it was the program.
  enum class Step { kUser, kRuntime, kProgram };
  struct Failure {
    Step step = Step::kProgram;
    int error = 0;
  };
  /// Our end of a pair, and the process's.
  struct Ends {
    Descriptor ours, theirs;
  };

  std::optional<Role> fork_or_part();
  [[noreturn]] void become_program(const Heritage& heritage, const std::string& preload,
                                   const std::string& runtime_options);
  /// Returns when it cannot be executed: errno says why.
  void execute() const;
  void set_environment(const std::string& preload, const std::string& runtime_options) const;
  bool libraries_readable() const;
  int failed_status() const;
  [[noreturn]] void give_up(const Failure& failed) const;
  void reap() const;
  Error explain(const Failure& failed) const;

  const LaunchOptions& options_;
  const WaitingSignals& signals_;
  pid_t process_ = -1;
  bool begun_ = false;
  Ends failure_;  // the process writes a Failure
  Ends go_;       // we write our number: who may trace it
};

}  // namespace karst::collect
