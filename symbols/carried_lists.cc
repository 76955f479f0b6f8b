// The note of format/filter_list.h, read from a module's file.
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "format/filter_list.h"
#include "format/sled_note.h"
#include "symbols/function_lists.h"

namespace karst::symbols {
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

ListChoice carried_lists(const std::string& path) {
  ListChoice lists;
  elf_version(EV_CURRENT);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return lists;
  Elf* elf = elf_begin(fd, ELF_C_READ_MMAP, nullptr);
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
  close(fd);
  return lists;
}

}  // namespace karst::symbols
