// SPDX-License-Identifier: MIT
// The calls of running processes as text, for `karst tail` and `karst run --live`: what collect/live/tail.h finds,
// named and drawn. A line has its time, its thread, how long the call took, and the call, indented.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/commands/live.h"
#include "cli/options.h"
#include "cli/text/terminal.h"
#include "collect/live/tail.h"

namespace karst::cli {

/// Which calls are shown, as it is given on a command line.
struct LiveArguments {
  std::string function;
  std::string not_function;
  std::vector<std::string> depths;  ///< "3" or "REGEX:3"
  std::string thread;
  std::string not_thread;
  std::string min_duration;
  bool no_notes = false;
  TextOptions text;
};

/// Adds --function and the like; `arguments` outlives the parse.
void add_live_options(Command command, LiveArguments& arguments);

/// The same, understood.
struct LiveFilter {
  /// Error: which option cannot be, and why.
  static Result<LiveFilter> of(const LiveArguments& arguments);

  struct Depth {
    choice::FunctionFilter functions;
    std::uint32_t levels = 0;
  };
  std::optional<choice::FunctionFilter> only;
  std::optional<choice::FunctionFilter> not_these;
  std::uint32_t depth = ~0U;
  std::vector<Depth> depths;
  std::string thread;
  std::string not_thread;
  std::uint64_t min_ns = 0;
  bool notes = true;

  /// Something is left out.
  bool chooses() const;
  collect::TailRule rule_of(const std::string& name) const;
  bool wants(const reader::Thread& thread) const;
};

/// Draws lines for a descriptor, a text at a time. One thread.
class LiveTree {
 public:
  /// `filter` must outlive it.
  LiveTree(const LiveFilter& filter, std::size_t width, bool colour);
  ~LiveTree();
  LiveTree(const LiveTree&) = delete;
  LiveTree& operator=(const LiveTree&) = delete;

  /// One more process; its calls are shown from the moment `from` on, and times count from `zero` (ticks). Returns its
  /// number.
  std::size_t add(std::uint32_t pid, collect::ArenaView arena, const symbols::ResolveOptions& names, std::uint64_t from,
                  std::uint64_t zero);
  const collect::ArenaView& arena(std::size_t process) const;
  /// Appends what became known of the process since. With `ended` there will be no more. True: there is more at once.
  bool look(std::size_t process, bool ended, std::string& text);
  /// It needs no memory any more; its counts stay.
  void remove(std::size_t process);

  collect::TailCounts counts() const;

 private:
  struct Watched;
  void draw(Watched& of, const collect::TailLine& line, std::string& text);
  void draw_thread(const Watched& of, const reader::Thread& thread, std::string& text) const;
  /// Returns the columns that are in use then.
  std::size_t indent(std::uint32_t level, std::string& text) const;
  void paint(std::string_view code, std::string_view what, std::string& text) const;

  const LiveFilter& filter_;
  const std::size_t width_;  ///< 0: any
  const bool colour_;
  std::vector<std::unique_ptr<Watched>> processes_;
  collect::TailCounts gone_;  ///< of those that were removed
};

/// Writes all of it, waiting as long as that takes. False: that cannot be, or `stop` says so.
bool write_live(int descriptor, std::string_view text, const volatile bool* stop = nullptr);

/// What to say at the end: how much was shown, and how much was not.
std::string live_summary(const collect::TailCounts& counts, const LiveFilter& filter);

}  // namespace karst::cli
