// SPDX-License-Identifier: MIT
// Ctrl+C is a key here while a line is typed, so that it drops the line alone; libedit restores the terminal before
// each line is returned, and then it is a signal again.
#include "cli/input/line_editor.h"

#include <histedit.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <utility>

#include "cli/text/terminal.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

constexpr int kRemembered = 1000;

std::string common_begin(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto [at, other] = std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(at, common.end());
  }
  return common;
}

/// In columns, as ls has them.
void list(const std::vector<std::string>& words) {
  constexpr std::size_t kMost = 200;
  std::size_t widest = 0;
  for (const std::string& word : words) widest = std::max(widest, text_width(word) + 2);
  const std::size_t width = terminal_width();
  const std::size_t in_line = width > widest ? width / widest : 1;
  std::string text = "\n";
  for (std::size_t at = 0; at < std::min(words.size(), kMost); ++at) {
    const bool ends_line = (at + 1) % in_line == 0 || at + 1 == words.size();
    text += ends_line ? words[at] + "\n" : words[at] + std::string(widest - text_width(words[at]), ' ');
  }
  if (words.size() > kMost) text += "\n... and others\n";
  std::fputs(text.c_str(), stdout);
}

}  // namespace

struct LineEditor::Impl {
  std::function<Completions(std::string_view before)> complete;
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string prompt = {};
  bool is_interrupted = false;

  static Impl& of(EditLine* editor) {
    void* data = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<Impl*>(data);
  }
  static char* say_prompt(EditLine* editor) { return of(editor).prompt.data(); }
  static unsigned char interrupt(EditLine* editor, int /*key*/) {
    of(editor).is_interrupted = true;
    std::fputs("^C\n", stdout);
    return CC_EOF;
  }
  static unsigned char tab(EditLine* editor, int /*key*/) { return of(editor).offer(); }

  unsigned char offer() {
    const LineInfo* const line = ::el_line(editor);
    const std::string_view before(line->buffer, static_cast<std::size_t>(line->cursor - line->buffer));
    if (before.empty() || before.back() == ' ' || before.back() == '\t')
      return ::el_insertstr(editor, "  ") == 0 ? CC_REFRESH : CC_ERROR;
    const Completions found = complete(before);
    if (found.words.empty()) return CC_REFRESH_BEEP;
    const std::string typed(before.substr(before.size() - found.replaced));
    std::string now = common_begin(found.words);
    if (found.words.size() == 1 && now.back() != '(') now += ' ';
    if (now.size() > typed.size() || (found.words.size() == 1 && now != typed)) {
      ::el_deletestr(editor, static_cast<int>(found.replaced));
      return ::el_insertstr(editor, now.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    }
    list(found.words);
    return CC_REDISPLAY;
  }
};

LineEditor::LineEditor(std::function<Completions(std::string_view before)> complete)
    : impl_(std::make_unique<Impl>(Impl{std::move(complete)})) {
  std::setlocale(LC_CTYPE, "");  // how many bytes are a letter
  impl_->history = ::history_init();
  HistEvent event;
  if (impl_->history != nullptr) {
    ::history(impl_->history, &event, H_SETSIZE, kRemembered);
    ::history(impl_->history, &event, H_SETUNIQUE, 1);
  }
  impl_->editor = ::el_init("karst", stdin, stdout, stderr);
  EditLine* const editor = impl_->editor;
  if (editor == nullptr) return;
  ::el_set(editor, EL_CLIENTDATA, impl_.get());
  ::el_set(editor, EL_EDITOR, "emacs");
  ::el_set(editor, EL_PROMPT, Impl::say_prompt);
  ::el_set(editor, EL_SIGNAL, 1);
  if (impl_->history != nullptr) ::el_set(editor, EL_HIST, ::history, impl_->history);
  ::el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  ::el_set(editor, EL_ADDFN, "karst-interrupt", "Drop the line", Impl::interrupt);
  ::el_set(editor, EL_ADDFN, "karst-complete", "Complete a word", Impl::tab);
  ::el_set(editor, EL_BIND, "^C", "karst-interrupt", nullptr);
  ::el_set(editor, EL_BIND, "\t", "karst-complete", nullptr);
  ::el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
  if (impl_->editor != nullptr) ::el_end(impl_->editor);
  if (impl_->history != nullptr) ::history_end(impl_->history);
}

LineEditor::Read LineEditor::read(const std::string& prompt, std::string& line) {
  if (impl_->editor == nullptr) return Read::kEnd;
  impl_->prompt = prompt;
  impl_->is_interrupted = false;
  std::fflush(stdout);
  ::el_set(impl_->editor, EL_PREP_TERM, 1);  // before the prompt is seen: what is typed then is a key already
  int size = 0;
  const char* const typed = ::el_gets(impl_->editor, &size);
  if (impl_->is_interrupted) return Read::kInterrupted;
  if (typed == nullptr || size <= 0) return Read::kEnd;
  line.assign(typed, static_cast<std::size_t>(size));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return Read::kLine;
}

void LineEditor::remember(const std::string& text) {
  HistEvent event;
  if (impl_->history != nullptr) ::history(impl_->history, &event, H_ENTER, text.c_str());
}

}  // namespace karst::cli
