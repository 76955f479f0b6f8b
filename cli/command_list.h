// SPDX-License-Identifier: MIT
// All commands, in the order of the help: F(name, group, first). A command is a file in cli/commands/ with
// register_NAME() (cli/command.h), and a line below.
//   group   its heading in the help
//   first   options that --help explains, with spaces between; empty: all of them
#pragma once

namespace karst::cli {

inline constexpr const char* kRecord = "Record a program";
inline constexpr const char* kLook = "Look at a trace";
inline constexpr const char* kAsk = "Ask it one thing";
inline constexpr const char* kLive = "Look into a program that runs, and switch its tracing";
inline constexpr const char* kConvert = "Convert a trace";
inline constexpr const char* kHelp = "Learn more";

}  // namespace karst::cli

#define KARST_COMMANDS(F)                                                                                             \
  F(run, kRecord, "--output --view --function --budget --memory --slowest --args --system --sched --count")           \
  F(attach, kRecord,                                                                                                  \
    "--function --not-function --budget --args --returns --system --trigger --library --sample --output")             \
  F(snapshot, kRecord, "")                                                                                            \
  F(places, kRecord, "")                                                                                              \
  F(view, kLook, "")                                                                                                  \
  F(report, kLook, "--by --sort --columns --limit --format --hist --callers --overhead --function --thread --range")  \
  F(tree, kLook, "--depth --slowest --function --thread --range --kept --min-duration --below --states --plain")      \
  F(flame, kLook, "--format --by --output --depth --share --function --thread --range --kept")                        \
  F(diff, kLook, "--with --range-a --range-b --request-a --request-b --fail-over --all --format --function --thread") \
  F(info, kLook, "")                                                                                                  \
  F(slow, kAsk, "--limit --each --follow --columns --format --function --thread --range --kept --min-duration")       \
  F(explain, kAsk, "")                                                                                                \
  F(calls, kAsk, "")                                                                                                  \
  F(locks, kAsk, "")                                                                                                  \
  F(memory, kAsk, "--by --limit --sort --columns --call --format --function --thread --range --kept")                 \
  F(files, kAsk, "")                                                                                                  \
  F(samples, kAsk, "")                                                                                                \
  F(requests, kAsk, "")                                                                                               \
  F(flows, kAsk, "")                                                                                                  \
  F(notes, kAsk, "")                                                                                                  \
  F(check, kAsk, "")                                                                                                  \
  F(query, kAsk, "")                                                                                                  \
  F(ps, kLive, "")                                                                                                    \
  F(top, kLive, "")                                                                                                   \
  F(tail, kLive, "")                                                                                                  \
  F(where, kLive, "")                                                                                                 \
  F(on, kLive, "")                                                                                                    \
  F(off, kLive, "")                                                                                                   \
  F(export, kConvert, "")                                                                                             \
  F(cut, kConvert, "")                                                                                                \
  F(merge, kConvert, "")                                                                                              \
  F(pack, kConvert, "")                                                                                               \
  F(import, kConvert, "")                                                                                             \
  F(resolve, kConvert, "")
