// SPDX-License-Identifier: MIT
#include "cli/commands/attach_options.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/commands/samples.h"
#include "cli/input/given_options.h"
#include "cli/input/patched.h"
#include "cli/input/program_options.h"
#include "cli/input/target.h"
#include "cli/text/help.h"
#include "format/filter_list.h"
#include "format/option_table.h"
#include "format/options.h"

namespace karst::cli {
namespace {

constexpr const char* kNeedsPlace = "Written when the place is reached";
constexpr const char* kTrace = "The trace that is written";

/// What each text of a repeated option means. False: one of them is wrong, which was said.
template <typename Choice>
bool parse_choices(const std::vector<std::string>& texts, const std::string& option, std::vector<Choice>& to) {
  for (const std::string& text : texts) {
    auto choice = Choice::parse(text);
    if (!choice) {
      usage_error(option + " " + choice.error().message, "attach");
      return false;
    }
    to.push_back(std::move(*choice));
  }
  return true;
}

}  // namespace

bool chooses(const AttachOptions& options) { return !options.functions.empty() || !options.not_functions.empty(); }

std::optional<collect::PlainAttach> plain_attach(const AttachOptions& options) {
  collect::PlainAttach plain;
  plain.choice.programs = !options.no_patch;
  if (!parse_choices(options.libraries, "--library", plain.choice.libraries) ||
      !parse_choices(options.probes, "--probes", plain.choice.probes))
    return std::nullopt;
  constexpr std::size_t kMinInstructions = format::option_index("min-instructions");
  if (const std::string& least = options.min_instructions; !least.empty()) {
    if (const Status right = check_flag(kMinInstructions, least); !right) {
      usage_error(right.error().message, "attach");
      return std::nullopt;
    }
    plain.choice.min_instructions = *format::parse_min_instructions(least);
  }
  plain.options.budget = kPlainBudget;
  for (const auto& [option, text] : {std::pair{format::option_index("budget"), &options.budget},
                                     std::pair{format::option_index("memory"), &options.memory}}) {
    if (!*text) continue;
    if (const Status right = read_flag(option, **text, plain.options); !right) {
      usage_error(right.error().message, "attach");
      return std::nullopt;
    }
  }
  if (!options.fibers.empty() && options.fibers != kFibersByStack && options.fibers != kNoFibers) {
    usage_error("--fibers=" + options.fibers + ": stack or none is needed", "attach");
    return std::nullopt;
  }
  // Until it is known which functions those are.
  plain.options.off = chooses(options);
  if (!options.fibers.empty()) plain.stacks = options.fibers == kFibersByStack;
  return plain;
}

Status check_attach_options(const AttachOptions& options, const Command& given) {
  const bool is_followed = options.sample.value_or(0) != 0 || options.all.on;
  if (options.triggers.empty()) {
    if (const std::string alone = given.given_of(kNeedsPlace); !alone.empty())
      return Error{alone + " needs a place to wait for: --trigger"};
    if (const std::string alone = is_followed ? std::string() : given.given_of(kTrace); !alone.empty())
      return Error{alone + " needs a place to wait for: --trigger, --sample or --all"};
  } else if (options.all.on) {
    return Error{"--all and --trigger do not go together: all calls are kept, whatever is reached"};
  }
  if (options.view && !options.all.on) return Error{"--view is for a trace that grows: --all is needed, too"};
  if (!options.frames.empty() && !(options.view && frames_of(options)))
    return Error{"--frames is for karst view: 'karst view ssh://HOST/PID' gives it"};
  const auto fits = options.all.check();
  return fits ? Status(Unit{}) : fits.error();
}

std::optional<std::pair<int, int>> frames_of(const AttachOptions& options) {
  int ends[2] = {-1, -1};
  const std::string& text = options.frames;
  const char* const last = text.data() + text.size();
  const auto in = std::from_chars(text.data(), last, ends[0]);
  if (in.ec != std::errc() || in.ptr == last || *in.ptr != ':') return std::nullopt;
  const auto out = std::from_chars(in.ptr + 1, last, ends[1]);
  const bool are_open = out.ec == std::errc() && out.ptr == last && ::fcntl(ends[0], F_GETFD) >= 0 &&
                        ::fcntl(ends[1], F_GETFD) >= 0 && std::min(ends[0], ends[1]) > STDERR_FILENO;
  return are_open ? std::optional(std::pair(ends[0], ends[1])) : std::nullopt;
}

void add_attach_options(Command& command, AttachOptions& options) {
  command.footer(
      "A process without libkarst gets it first, and is traced from then on. What was\n"
      "built with karst-gcc or karst-g++ has its calls recorded as by 'karst run'; of\n"
      "any other program the functions are patched while all its threads are stopped,\n"
      "for some milliseconds. Without --trigger and --sample that is all.\n\n"
      "The place is watched by a hardware breakpoint: the process is not stopped,\n"
      "and not slowed down until it is hit. PLACE is a function, traced or not,\n"
      "FILE:LINE, 0xADDRESS in the executable or MODULE+0xADDRESS; :N behind it for\n"
      "the first N times. Children by fork are waited for as well, and what the\n"
      "process becomes by exec. Ends when all were reached, with the process, or at\n"
      "Ctrl-C, and writes what was kept.\n\n"
      "With --all every call is kept, in a file that grows, until Ctrl-C, the time of\n"
      "--for or the process's end. The process stays traced then: 'karst off' ends it.");
  add_target(command, options.target);
  command.add_option("--trigger", options.triggers, "The place; may be given several times")
      .type_name("PLACE")
      .allow_extra_args(false);
  command.add_option("-f,--function", options.functions, "Trace only functions whose demangled name matches")
      .type_name("REGEX")
      .allow_extra_args(false);
  command.add_option("--not-function", options.not_functions, "But not those whose demangled name matches")
      .type_name("REGEX")
      .allow_extra_args(false);
  command
      .add_option("--budget", options.budget,
                  "What tracing may cost: a share of the time, or off (default 5%, off if it was built for tracing)")
      .type_name("SHARE");
  add_value_options(command, options.values);
  add_system_option(command, options.system);
  in_group(command, kNeedsPlace, [&] {
    command.add_flag("--multi", options.multi, "A name may be that of several functions");
    command.add_option("--last", options.last, "How much of what came before is kept (default 200ms)")
        .type_name("TIME");
  });
  in_group(command, kTrace, [&] {
    add_sample_option(command, options.sample,
                      ", until the process ends or Ctrl-C; a process that cannot be patched has samples alone");
    command.add_option("-o,--output", options.output, "Trace file to write (default: NAME-PID-N.karst)")
        .type_name("FILE");
    options.all.add(command);
    command.add_flag("--view", options.view,
                     "With --all: look at the trace in the browser while it grows; closing the page ends it, too");
    command
        .add_option("--frames", options.frames, "IN:OUT, with --view: the page is on another machine; two descriptors")
        .unlisted();
    command.add_option("--for", options.length, "With --all or --sample: end after TIME (10s, 5m)").type_name("TIME");
    add_state_options(command, options.states);
    command
        .add_option("--usage", options.usage,
                    "Whether karst reads what the process, its threads and the machine use meanwhile: on (the default) "
                    "or off")
        .check(one_of({"on", "off"}))
        .type_name("on|off");
    command.add_flag("--no-source", options.no_source, "Leave out the text of source files");
  });
  in_group(command, "Programs that were not built for tracing", [&] {
    command.add_flag("--no-patch", options.no_patch,
                     "Leave their functions alone; with --sample nothing comes into the process at all");
    command
        .add_option("--library", options.libraries,
                    "Patch the functions of loaded libraries whose file's name matches, too: like 'libssl*', or "
                    "'libssl*:SSL_*' for those functions alone")
        .type_name("GLOB[:FUNCTIONS]")
        .allow_extra_args(false);
    command.add_option("--probes", options.probes, "Note each time that these probes are passed, as 'karst run' does")
        .type_name("PROVIDER:NAME")
        .allow_extra_args(false);
    command
        .add_option("--min-instructions", options.min_instructions,
                    "Leave out functions of fewer machine instructions that have no loop (default 12)")
        .type_name("N");
    command
        .add_option("--fibers", options.fibers,
                    "stack: all stacks that the program switches to have lanes of their own, as 'karst run' does for "
                    "programs that are known to switch some; none: none has")
        .type_name("HOW");
    command.add_option("--memory", options.memory, "For the history of all threads (default 64M)").type_name("SIZE");
  });
}

}  // namespace karst::cli
