// SPDX-License-Identifier: MIT
// What output is for: a person's terminal, or another program. Text for a terminal fits its width, has colours and goes
// through a pager; anything else gets the same plain text everywhere, cut by nothing.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/child_process.h"
#include "base/descriptor.h"
#include "base/output.h"
#include "cli/options.h"
#include "reader/trace.h"

namespace karst::cli {

/// Columns of the terminal that `descriptor` is; 0 when it is none: then nothing is cut. COLUMNS in the environment, a
/// number of 20 and more, stands for it on a terminal.
std::size_t terminal_width(int descriptor = STDOUT_FILENO);
/// It is a terminal, and neither NO_COLOR nor TERM=dumb asks for plain text.
bool has_colour(int descriptor);

struct TextOptions {
  std::size_t width = 0;  ///< --width; 0: the terminal's
  bool wide = false;      ///< --wide: nothing is cut
  bool no_pager = false;
};

/// Columns that lines on `descriptor` may have; 0: any number.
std::size_t chosen_width(const TextOptions& options, int descriptor = STDOUT_FILENO);

/// Adds --wide, --width and --no-pager; `options` outlives the parse.
void add_text_options(Command command, TextOptions& options);
/// The same without --no-pager, to a group that is open.
void add_width_options(Command command, TextOptions& options);

enum class Style { kPlain, kStrong, kFaint, kName, kWarning };

/// Where a command prints text for people. Decides at once how wide it is; the pager comes with the first output() on a
/// terminal, so that messages of what failed before stand on the terminal. Use from one thread.
class Screen {
 public:
  explicit Screen(const TextOptions& options);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Columns that a line may have; 0: any number.
  std::size_t width() const { return width_; }
  /// `text` in colour, where there is any.
  std::string paint(Style style, std::string_view text) const;
  /// Where to print; the same one each time.
  Output& output();
  /// Ends the output and waits until the pager was left; returns the exit status. A pager that was left early is no
  /// failure. With `read`: nothing is finished when others wrote to its file meanwhile.
  int finish(const reader::Trace* read = nullptr);

 private:
  void start_pager();
  void end_pager();

  const bool paged_;
  const bool colour_;
  const std::size_t width_;
  Output output_;
  std::optional<ChildProcess> pager_;
  Descriptor own_stdout_;
};

}  // namespace karst::cli
