// SPDX-License-Identifier: MIT
// karst asked (not shown in the help): answers what the page of `karst view` asks in SQL, as JSON.
//
// It is a process of its own (engine/server/asked_program.h), as SQL may take any time and memory: the server ends it
// when nobody waits any more, and goes on when it dies. SQL comes by standard input, where other users do not see it.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/asked_answers.h"
#include "cli/input/database.h"
#include "cli/input/detectors.h"

namespace karst::cli {
namespace {

struct Options {
  std::string what;
  std::string file;
  pid_t parent = 0;
  bool raw = false;
};

void limit(__rlimit_resource what, rlim_t most) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return;
  now.rlim_max = std::min(now.rlim_max, most);
  now.rlim_cur = std::min(now.rlim_cur, now.rlim_max);
  ::setrlimit(what, &now);
}

/// DuckDB counts most of what a query takes, but not all: texts that are being made, and our own lists of calls.
void limit_itself() {
  const rlim_t memory = usual_query_memory();
  if (memory != 0) limit(RLIMIT_DATA, memory + memory / 2);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // If memory becomes short all the same, this process goes before the server does.
  if (std::FILE* const score = std::fopen("/proc/self/oom_score_adj", "we"); score != nullptr) {
    static_cast<void>(std::fputs("1000", score));
    std::fclose(score);
  }
}

/// Whether the server is still there. From here on this process ends with it.
bool follow(pid_t parent) { return ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent; }

std::string answer(const Options& options) {
  if (options.what == "schema") {
    const auto duckdb = find_duckdb();
    return schema_json(duckdb ? "" : duckdb.error().message);
  }
  const auto input = open_traces({options.file}, options.raw);
  if (!input) return error_json(input.error());
  if (options.what == "check") return check_json(*input);
  return query_json(*input, std::string(std::istreambuf_iterator<char>(std::cin), {}));
}

int asked(const Options& options) {
  if (!follow(options.parent)) return kExitFailed;
  limit_itself();
  std::string made;
  try {
    made = answer(options);
  } catch (const std::bad_alloc&) {
    made = error_json({"memory is out for this answer"});
  }
  Output output = Output::to_stdout();
  output.append(made);
  return finish_output(output);
}

}  // namespace

void register_asked(Command commands) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = commands.app().add_subcommand("asked", "Answer what the page asks in SQL");
  command->group("");
  command->add_option("WHAT", options->what)->required()->check(CLI::IsMember({"query", "check", "schema"}));
  command->add_option("FILE", options->file)->required();
  command->add_option("--parent", options->parent)->required();
  command->add_flag("--raw", options->raw);
  command->callback([options] {
    if (const int status = asked(*options); status != kExitOk) throw CLI::RuntimeError(status);
  });
}

}  // namespace karst::cli
