// The one opener of ELF files for tools: what it tells of this program, and of files that lie.
#include "binary/elf_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace karst::binary {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

Descriptor open_self() { return Descriptor(open(kSelf, O_RDONLY | O_CLOEXEC)); }

Descriptor file_with(std::string_view bytes) {
  Descriptor file(memfd_create("elf", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return file;
}

/// A file of these segments, with `rest` behind their table.
std::string made(const std::vector<Elf64_Phdr>& segments, std::string_view rest) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<Elf64_Half>(segments.size());
  std::string all(reinterpret_cast<const char*>(&header), sizeof header);
  all.append(reinterpret_cast<const char*>(segments.data()), segments.size() * sizeof segments[0]);
  return all.append(rest);
}

/// A segment of notes that lies behind the table of one segment.
Elf64_Phdr notes_of(std::size_t size) {
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  segment.p_filesz = size;
  segment.p_align = 4;
  return segment;
}

std::string note(std::uint32_t type, std::string_view name, std::string_view content) {
  const Elf64_Nhdr header{static_cast<Elf64_Word>(name.size()), static_cast<Elf64_Word>(content.size()), type};
  std::string all(reinterpret_cast<const char*>(&header), sizeof header);
  for (const std::string_view part : {name, content}) {
    all.append(part);
    all.resize((all.size() + 3) / 4 * 4);
  }
  return all;
}

/// Asks for all that there is. The number of bytes that were to be had.
std::size_t look_at_all(const ElfFile& file) {
  std::size_t bytes = 0;
  std::uint64_t sum = 0;
  const auto add = [&](const auto& view) {
    for (const auto b : view) sum += static_cast<unsigned char>(b);
    bytes += view.size();
  };
  for (const GElf_Phdr& segment : file.segments()) {
    add(file.text(segment.p_offset, segment.p_filesz));
    if (segment.p_type != PT_NOTE) continue;
    file.for_each_note(segment, segment.p_filesz, [&](const ElfNote& n) {
      add(n.name);
      add(n.content);
    });
  }
  for (const ElfSection& section : file.sections()) {
    add(section.name);
    add(file.contents(section));
  }
  EXPECT_LE(sum, bytes * 255);
  return bytes;
}

void expect_nothing(const ElfFile& file) {
  EXPECT_FALSE(file.is_elf());
  EXPECT_FALSE(file.is_x86_64());
  EXPECT_FALSE(file.header());
  EXPECT_EQ(file.type(), static_cast<unsigned>(ET_NONE));
  EXPECT_TRUE(file.segments().empty());
  EXPECT_TRUE(file.sections().empty());
  EXPECT_TRUE(file.text(0, 1).empty());
  EXPECT_EQ(file.chunk(0, 1, ELF_T_BYTE), nullptr);
}

TEST(ElfFile, TellsOfThisProgram) {
  for (const ElfAccess access : {ElfAccess::kRead, ElfAccess::kMap}) {
    const ElfFile self(open_self(), access);
    EXPECT_TRUE(self.is_elf() && self.is_x86_64());
    EXPECT_TRUE(self.type() == ET_DYN || self.type() == ET_EXEC);
    EXPECT_EQ(self.segments().size(), self.header()->e_phnum);
    const auto sections = self.sections();
    EXPECT_EQ(sections.size() + 1, self.header()->e_shnum);
    const auto named = [&](std::string_view name) {
      return *std::find_if(sections.begin(), sections.end(), [=](const ElfSection& s) { return s.name == name; });
    };
    EXPECT_EQ(self.contents(named(".text")).size(), named(".text").header.sh_size);
    EXPECT_TRUE(self.contents(named(".bss")).empty());
    EXPECT_EQ(self.text(1, 3), "ELF");
    EXPECT_EQ(self.whole().size(), static_cast<std::size_t>(lseek(open_self().get(), 0, SEEK_END)));
  }
}

TEST(ElfFile, OfWhatIsNoneHasNothing) {
  expect_nothing(ElfFile());
  expect_nothing(ElfFile(Descriptor()));
  expect_nothing(ElfFile::borrowing(-1));
  expect_nothing(ElfFile::of(nullptr));
  expect_nothing(ElfFile::in_memory({}));
  for (const std::string text : {"", "x",
                                 "\x7f"
                                 "ELF",
                                 "#!/bin/sh\n", "!<arch>\n"})
    for (const ElfAccess access : {ElfAccess::kRead, ElfAccess::kMap}) expect_nothing(ElfFile(file_with(text), access));
}

TEST(ElfFile, OwnsWhatItIsGivenAlone) {
  const Descriptor mine = open_self();
  int theirs = -1;
  {
    Descriptor given = open_self();
    theirs = given.get();
    const ElfFile owner(std::move(given));
    const ElfFile borrower = ElfFile::borrowing(mine.get());
    const ElfFile other = ElfFile::of(borrower.get());
    EXPECT_EQ(other.segments().size(), owner.segments().size());
  }
  EXPECT_EQ(fcntl(theirs, F_GETFD), -1);
  EXPECT_GE(fcntl(mine.get(), F_GETFD), 0);
}

TEST(ElfFile, ViewsStayWhenItIsMoved) {
  ElfFile self(open_self());
  const std::string_view head = self.text(0, 4);
  const ElfFile moved = std::move(self);
  EXPECT_EQ(head,
            "\x7f"
            "ELF");
  EXPECT_EQ(moved.text(0, 4).data(), head.data());
}

TEST(ElfFile, InMemoryIsAsInAFile) {
  std::ifstream in(kSelf, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto there = ElfFile::in_memory(std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(there.is_x86_64());
  EXPECT_EQ(look_at_all(there), look_at_all(ElfFile(open_self())));
}

TEST(ElfFile, OfOtherMachinesIsToldApart) {
  const std::string good = made({}, std::string(4096, '\0'));
  EXPECT_TRUE(ElfFile(file_with(good)).is_x86_64());
  for (const auto& [at, value] : {std::pair{std::size_t{EI_CLASS}, ELFCLASS32}, {EI_DATA, ELFDATA2MSB}, {18, EM_386}}) {
    std::string other = good;
    other[at] = static_cast<char>(value);
    EXPECT_FALSE(ElfFile(file_with(other)).is_x86_64()) << at;
  }
}

TEST(ElfFile, NotesAreTakenInOrderAndWithinTheirSegment) {
  using namespace std::string_view_literals;
  const std::string two = note(1, "A\0"sv, "first") + note(2, "BCDE\0"sv, "");
  const ElfFile file(file_with(made({notes_of(two.size())}, two + note(3, "X\0"sv, "behind"))));
  std::vector<std::string> seen;
  const auto see = [&](const ElfNote& n) {
    seen.push_back(std::to_string(n.type) + std::string(n.name.substr(0, n.name.size() - 1)) + std::string(n.content));
  };
  file.for_each_note(file.segments().at(0), ~std::uint64_t{0}, see);
  EXPECT_EQ(seen, (std::vector<std::string>{"1Afirst", "2BCDE"}));
  seen.clear();
  file.for_each_note(file.segments().at(0), 24, see);
  EXPECT_EQ(seen, std::vector<std::string>{"1Afirst"});
}

TEST(ElfFile, NotesThatLieAboutTheirSizeEndTheSegment) {
  for (const std::uint32_t size : {9U, 0x7fffffffU, 0xfffffff0U, 0xffffffffU}) {
    for (const std::size_t field : {0U, 4U}) {  // of the name, of the content
      std::string bytes = note(1, "ABCD", "1234");
      std::memcpy(&bytes[field], &size, sizeof size);
      const ElfFile file(file_with(made({notes_of(bytes.size())}, bytes)));
      int seen = 0;
      file.for_each_note(file.segments().at(0), ~std::uint64_t{0}, [&](const ElfNote&) { ++seen; });
      EXPECT_EQ(seen, 0) << size;
    }
  }
}

TEST(ElfFile, SegmentsAreBounded) {
  const ElfFile file(file_with(made(std::vector<Elf64_Phdr>(1000), "")));
  EXPECT_EQ(file.segments().size(), ElfFile::kMostSegments);
  EXPECT_EQ(file.segments(2000).size(), 1000U);
}

TEST(ElfFile, PlacesBeyondTheFileAreEmpty) {
  const std::string bytes = made({}, std::string(100, 'x'));
  const ElfFile file(file_with(bytes));
  const std::uint64_t huge = ~std::uint64_t{0};
  EXPECT_EQ(file.text(bytes.size() - 4, 4), "xxxx");
  for (const auto& [offset, size] : {std::pair{std::uint64_t{0}, huge},
                                     {huge, 1},
                                     {bytes.size(), 1},
                                     {huge - 3, 8},
                                     {bytes.size() - 4, 5},
                                     {std::uint64_t{1} << 63, 16}})
    EXPECT_TRUE(file.text(offset, size).empty()) << offset << " " << size;
}

TEST(ElfFile, CutAndDamagedOnesAreReadAsFarAsTheyGo) {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::string bytes(std::size_t{1} << 16, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string bad = bytes.substr(0, round % 2 == 0 ? random() % 2048 : bytes.size());
    for (int i = 0; i < 4 && !bad.empty(); ++i)
      bad[random() % std::min<std::size_t>(bad.size(), 900)] ^= static_cast<char>(1U << random() % 8);
    EXPECT_LE(look_at_all(ElfFile(file_with(bad))), bad.size() * 3 * ElfFile::kMostSegments);
    EXPECT_LE(look_at_all(ElfFile::in_memory(std::as_bytes(std::span(bad)))), bad.size() * 3 * ElfFile::kMostSegments);
  }
}

}  // namespace
}  // namespace karst::binary
