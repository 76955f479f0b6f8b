// SPDX-License-Identifier: MIT
// The note of format/filter_list.h, read from a module's file, in a sandbox.
#include <string_view>

#include "base/descriptor.h"
#include "binary/elf_file.h"
#include "choice/function_lists.h"
#include "format/filter_list.h"
#include "format/sled_note.h"
#include "sandbox/sandbox.h"

namespace karst::choice {
namespace {

void add_entry(std::string_view entry, ListChoice& lists) {
  const auto equals = entry.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view kind = entry.substr(0, equals);
  const std::string_view value = entry.substr(equals + 1);
  if (kind == "min-instructions") {
    if (const auto count = format::parse_min_instructions(value)) lists.min_instructions = count;
    return;
  }
  if (value.empty() || !format::glob_problem(value).empty()) return;
  if (kind == "no-trace") lists.no_trace.emplace_back(value);
  if (kind == "only") lists.only.emplace_back(value);
}

void read_note(const binary::ElfNote& note, ListChoice& lists) {
  constexpr std::string_view kName(KARST_NOTE_NAME, sizeof KARST_NOTE_NAME);
  if (note.type != format::kListNoteType || note.name != kName) return;
  std::string_view entries = note.content;
  while (!entries.empty()) {
    const auto end = entries.find('\0');
    if (end == std::string_view::npos) break;
    add_entry(entries.substr(0, end), lists);
    entries.remove_prefix(end + 1);
  }
}

}  // namespace

ListChoice lists_in(const std::string& path) {
  ListChoice lists;
  const binary::ElfFile file(Descriptor(sandbox::open_regular(path.c_str())), binary::ElfAccess::kMap);
  if (!file.is_elf()) return lists;
  for (const GElf_Phdr& segment : file.segments())
    if (segment.p_type == PT_NOTE)
      file.for_each_note(segment, segment.p_filesz, [&](const binary::ElfNote& note) { read_note(note, lists); });
  return lists;
}

namespace {

void answer_lists(const std::vector<std::string>& paths, sandbox::AnswerWriter& out) {
  for (const std::string& path : paths) {
    const ListChoice lists = lists_in(path);
    for (const auto* globs : {&lists.no_trace, &lists.only}) {
      out.number(globs->size());
      for (const std::string& glob : *globs) out.text(glob);
    }
    out.number(lists.min_instructions ? *lists.min_instructions + std::uint64_t{1} : 0);
  }
}

ListChoice decode(sandbox::AnswerReader& in) {
  ListChoice lists;
  for (auto* globs : {&lists.no_trace, &lists.only}) {
    globs->resize(in.count(sizeof(std::uint64_t)));
    for (std::string& glob : *globs) glob = in.text();
    std::erase_if(*globs, [](const std::string& glob) { return !format::glob_problem(glob).empty(); });
  }
  if (const std::uint64_t least = in.number(); least != 0 && least <= 0xffffffffU)
    lists.min_instructions = static_cast<std::uint32_t>(least - 1);
  return lists;
}

}  // namespace

std::vector<ListChoice> carried_lists(const std::vector<std::string>& paths,
                                      const std::optional<sandbox::Credentials>& as) {
  std::vector<ListChoice> all;
  const auto answer = sandbox::in_sandbox({.as = as}, [&](sandbox::AnswerWriter& out) { answer_lists(paths, out); });
  if (answer) {
    sandbox::AnswerReader in(*answer);
    for (std::size_t i = 0; i < paths.size(); ++i) all.push_back(decode(in));
    if (in.is_whole()) return all;
  }
  all.clear();
  // One of them is damaged: it alone goes without.
  for (const std::string& path : paths)
    all.push_back(paths.size() == 1 ? ListChoice() : carried_lists({path}, as).front());
  return all;
}

}  // namespace karst::choice
