// SPDX-License-Identifier: MIT
#include "toolchain/lists_object.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "format/filter_list.h"
#include "format/sled_note.h"

namespace karst::toolchain {
namespace {

constexpr std::size_t kNoteAlignment = 4;
// Names of sections, one after the other; their places in it.
constexpr char kNames[] = "\0.note.karst.lists\0.note.GNU-stack\0.shstrtab";
constexpr std::uint32_t kNoteName = 1;
constexpr std::uint32_t kStackName = 19;
constexpr std::uint32_t kNamesName = 35;
static_assert(std::string_view(kNames + kNoteName) == ".note.karst.lists" &&
              std::string_view(kNames + kStackName) == ".note.GNU-stack" &&
              std::string_view(kNames + kNamesName) == ".shstrtab");

template <typename T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void pad(std::string& to, std::size_t alignment) { to.resize((to.size() + alignment - 1) / alignment * alignment); }

std::string note(const std::vector<std::string>& entries) {
  std::string content;
  for (const std::string& entry : entries) content.append(entry).push_back('\0');
  std::string all;
  append(all, Elf64_Nhdr{sizeof KARST_NOTE_NAME, static_cast<Elf64_Word>(content.size()), format::kListNoteType});
  all.append(KARST_NOTE_NAME, sizeof KARST_NOTE_NAME);
  pad(all, kNoteAlignment);
  all += content;
  pad(all, kNoteAlignment);
  return all;
}

Elf64_Shdr section(std::uint32_t name, std::uint32_t type, std::uint64_t flags, std::size_t offset, std::size_t size,
                   std::size_t alignment) {
  return {name, type, flags, 0, offset, size, 0, 0, alignment, 0};
}

}  // namespace

std::string lists_object(const std::vector<std::string>& entries) {
  const std::string content = note(entries);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 3;

  const std::size_t names_at = sizeof header + content.size();
  header.e_shoff = (names_at + sizeof kNames + 7) / 8 * 8;
  std::string object;
  append(object, header);
  object += content;
  object.append(kNames, sizeof kNames);
  pad(object, 8);
  append(object, Elf64_Shdr{});
  append(object, section(kNoteName, SHT_NOTE, SHF_ALLOC, sizeof header, content.size(), kNoteAlignment));
  append(object, section(kStackName, SHT_PROGBITS, 0, names_at, 0, 1));
  append(object, section(kNamesName, SHT_STRTAB, 0, names_at, sizeof kNames, 1));
  return object;
}

Result<std::string> as_inherited_file(const std::string& bytes) {
  const int fd = memfd_create("karst-lists", 0);
  if (fd < 0) return Error{std::string("cannot make a temporary file: ") + std::strerror(errno)};
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{std::string("cannot write a temporary file: ") + std::strerror(errno)};
    done += static_cast<std::size_t>(n);
  }
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace karst::toolchain
