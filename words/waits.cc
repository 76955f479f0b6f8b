// SPDX-License-Identifier: MIT
#include "words/waits.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/plain_name.h"
#include "base/text.h"
#include "words/path.h"
#include "words/wait_words.h"

namespace karst::words {

WaitTeller::WaitTeller(const reader::Trace& trace, analysis::CallsOf calls_of)
    : trace_(trace), kept_off_(trace, std::move(calls_of)) {}

std::string WaitTeller::name(const reader::Thread& thread, std::uint32_t function) const {
  return std::string(plain_name(trace_.function(trace_.processes()[thread.process], function).name));
}

std::string WaitTeller::time(std::uint64_t ticks) const { return duration_text(trace_.clock().to_ns(ticks)); }

ToldWait WaitTeller::tell(const analysis::Wait& wait) const {
  const Writing writing{[this](const reader::Thread& of, std::uint32_t id) { return name(of, id); },
                        [this](std::uint64_t ticks) { return time(ticks); }};
  const reader::States& states = trace_.states();
  const analysis::KeptOff& kept = kept_off_.of(wait);
  return {wait, kept, printable(wait_words(wait, states, writing, kept_off_words(kept, states, writing)))};
}

ToldLink WaitTeller::tell(analysis::ChainLink link) const {
  ToldLink told{std::move(link), std::nullopt, {}};
  told.words = "meanwhile " + who(told.of, false);
  if (!told.of.waited) return told;
  told.wait = tell(told.of.wait);
  told.words += fmt::format(": {} {}", time(told.of.wait.length()), told.wait->words);
  return told;
}

std::string WaitTeller::who(const analysis::ChainLink& link, bool innermost) const {
  std::vector<std::string> names;
  for (const std::uint32_t of : link.functions) names.push_back(printable(name(*link.thread, of)));
  if (innermost && !names.empty()) names.erase(names.begin(), names.end() - 1);
  const std::string path = path_text(std::move(names));
  const std::string thread = fmt::format("{} {}", link.thread->tid, printable(link.thread->name));
  return path.empty() ? thread : thread + " in " + path;
}

}  // namespace karst::words
