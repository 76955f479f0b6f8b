// SPDX-License-Identifier: MIT
// karst export --to order: in which order a linker should lay out the functions of a program.
#pragma once
#include <string>

#include "cli/input/trace_input.h"
#include "cli/options.h"

namespace karst::cli {

struct OrderOptions {
  std::string format;  ///< symbols, sections or callgraph; empty: symbols
  std::string by;      ///< first or calls; empty: first
  std::string module;  ///< empty: the program itself

  bool any() const { return !format.empty() || !by.empty() || !module.empty(); }
};

/// What the help says of it.
extern const char* const kOrderHelp;

/// `options` must live until the command line was parsed.
void add_order_options(Command command, OrderOptions& options);

/// Writes it to `file`, "-" or empty for standard output. Returns the exit status.
int export_order(const InputOptions& of, const OrderOptions& options, const std::string& file);

}  // namespace karst::cli
