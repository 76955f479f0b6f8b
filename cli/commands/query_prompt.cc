// SPDX-License-Identifier: MIT
// A statement may have several lines, until a semicolon ends it. Words that begin with a dot are the prompt's own.
#include "cli/commands/query_prompt.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/text.h"
#include "cli/command.h"
#include "cli/commands/query_schema.h"
#include "cli/input/history_file.h"
#include "cli/input/line_editor.h"
#include "cli/input/sql_words.h"

namespace karst::cli {
namespace {

constexpr const char* kBlank = " \t\r\n";

/// While it lives, Ctrl+C ends what the database is asked, and not the program.
class CtrlC {
 public:
  explicit CtrlC(sql::Database& database) {
    asked_ = &database;
    struct sigaction end {};
    end.sa_handler = [](int) {
      if (sql::Database* const asked = asked_; asked != nullptr) asked->interrupt();
    };
    end.sa_flags = SA_RESTART;
    ::sigaction(SIGINT, &end, &before_);
  }
  ~CtrlC() {
    ::sigaction(SIGINT, &before_, nullptr);
    asked_ = nullptr;
  }
  CtrlC(CtrlC&&) = delete;

 private:
  static std::atomic<sql::Database*> asked_;
  struct sigaction before_ {};
};

std::atomic<sql::Database*> CtrlC::asked_ = nullptr;

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlank) - first + 1));
}

class Prompt {
 public:
  Prompt(sql::Database& database, const PrintOptions& options, const Inputs& inputs)
      : database_(database),
        options_(options),
        inputs_(inputs),
        words_(database),
        history_("query"),
        editor_([this](std::string_view before) { return words_.complete(before); }) {
    for (const std::string& entry : history_.entries()) editor_.remember(entry);
  }

  int run() {
    greet();
    std::string typed, line;
    while (true) {
      const LineEditor::Read read = editor_.read(typed.empty() ? "karst> " : "  ...> ", line);
      if (read == LineEditor::Read::kEnd) break;
      if (read == LineEditor::Read::kInterrupted) {
        typed.clear();
        continue;
      }
      if (typed.empty() && trimmed(line).empty()) continue;
      typed += typed.empty() ? line : "\n" + line;
      if (const std::string word = trimmed(typed); word.front() == '.') {
        remember(word);
        typed.clear();
        if (!obey(word)) break;
      } else if (sql::is_ended(typed)) {
        remember(word);
        typed.clear();
        ask(word);
      }
    }
    std::fputs("\n", stdout);
    return kExitOk;
  }

 private:
  void greet() const {
    for (const auto& input : inputs_) warn_partial(*input);
    const std::string what =
        inputs_.size() == 1 ? printable(inputs_.front()->trace.name()) : plural(inputs_.size(), "trace");
    std::fputs(
        fmt::format("SQL of {}; a semicolon ends a statement. Tab completes. .tables, .schema TABLE, .quit\n", what)
            .c_str(),
        stdout);
  }

  void remember(const std::string& typed) {
    editor_.remember(typed);
    history_.add(typed);
  }

  /// False: the person wants to go.
  bool obey(const std::string& typed) {
    const std::size_t blank = typed.find_first_of(kBlank);
    const std::string word = typed.substr(0, blank);
    const std::string name = blank == std::string::npos ? std::string() : trimmed(typed.substr(blank));
    if (word == ".quit" || word == ".exit") return false;
    Screen screen(options_.text);
    if (word == ".tables") {
      print_tables(screen);
    } else if (word != ".schema") {
      fail({"there is no " + word + "; there are .tables, .schema TABLE and .quit"});
    } else if (name.empty()) {
      print_schema(screen);
    } else if (!print_table(screen, name)) {
      fail({"Karst has no table " + name + "; .tables lists them, and DESCRIBE tells of your own"});
    }
    screen.finish();
    return true;
  }

  void ask(const std::string& typed) {
    const CtrlC ctrl_c(database_);
    print_answer(database_, typed, options_, {}, inputs_.front()->trace);
    words_.renew();  // it may have made a view or a macro
  }

  sql::Database& database_;
  const PrintOptions& options_;
  const Inputs& inputs_;
  SqlWords words_;
  const HistoryFile history_;
  LineEditor editor_;
};

}  // namespace

int run_query_prompt(sql::Database& database, const PrintOptions& options, const Inputs& inputs) {
  return Prompt(database, options, inputs).run();
}

}  // namespace karst::cli
