// The note of format/filter_list.h, read from a module's file, in a sandbox.
#include <gelf.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "base/descriptor.h"
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

void read_notes(Elf_Data* data, ListChoice& lists) {
  GElf_Nhdr note;
  std::size_t name = 0;
  std::size_t content = 0;
  for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &name, &content)) > 0;) {
    const char* bytes = static_cast<const char*>(data->d_buf);
    if (note.n_type != format::kListNoteType || note.n_namesz != sizeof KARST_NOTE_NAME ||
        std::memcmp(bytes + name, KARST_NOTE_NAME, sizeof KARST_NOTE_NAME) != 0)
      continue;
    std::string_view entries(bytes + content, note.n_descsz);
    while (!entries.empty()) {
      const auto end = entries.find('\0');
      if (end == std::string_view::npos) break;
      add_entry(entries.substr(0, end), lists);
      entries.remove_prefix(end + 1);
    }
  }
}

}  // namespace

ListChoice lists_in(const std::string& path) {
  ListChoice lists;
  elf_version(EV_CURRENT);
  const Descriptor file(sandbox::open_regular(path.c_str()));
  if (!file) return lists;
  Elf* elf = elf_begin(file.get(), ELF_C_READ_MMAP, nullptr);
  std::size_t count = 0;
  if (elf != nullptr && elf_kind(elf) == ELF_K_ELF && elf_getphdrnum(elf, &count) == 0) {
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_NOTE) continue;
      // mold puts notes aligned to 4 and to 8 bytes into one segment; those met in practice can be stepped through
      // by 4.
      Elf_Data* data =
          elf_getdata_rawchunk(elf, static_cast<std::int64_t>(segment.p_offset), segment.p_filesz, ELF_T_NHDR);
      if (data != nullptr) read_notes(data, lists);
    }
  }
  if (elf != nullptr) elf_end(elf);
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
