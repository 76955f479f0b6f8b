// SPDX-License-Identifier: MIT
#include "collect/launch/plain_part.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/sled_note.h"

namespace karst::collect {
namespace {

constexpr std::uint64_t kLeastSize = 24;  // bytes of a function

struct Section {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::span<const std::byte> bytes;  // as far as the file has them
};

template <typename T>
std::optional<T> read(const Section& section, std::uint64_t address) {
  if (address < section.begin || section.bytes.size() < sizeof(T) ||
      address - section.begin > section.bytes.size() - sizeof(T))
    return std::nullopt;
  T value;
  std::memcpy(&value, section.bytes.data() + (address - section.begin), sizeof value);
  return value;
}

/// Sections by the names that compilers and linkers give them.
class Sections {
 public:
  explicit Sections(const binary::ElfFile& file) {
    for (const binary::ElfSection& s : file.sections()) {
      const std::string_view name = s.name;
      Section section{s.header.sh_addr, s.header.sh_addr + s.header.sh_size, {}};
      if (is_read(name)) section.bytes = file.contents(s);
      if (name == "karst_sleds" || name == "karst_clang_sleds") add_units(section);
      if (name == "xray_instr_map" && s.header.sh_size != 0) has_clangs_own = true;
      if (name == KARST_UNTRACED_SECTION) add_untraced(section);
      if (name == ".eh_frame_hdr") index = section;
      if (name == ".eh_frame") frames = section;
      if (name.starts_with(".text")) texts.push_back(section);
    }
    std::sort(traced.begin(), traced.end());
  }

  Section index;
  Section frames;
  std::vector<Section> texts;
  std::vector<std::uint64_t> traced;  // addresses within functions that need no patch
  bool has_clangs_own = false;        // a table that does not tell which functions their source keeps out

 private:
  static bool is_read(std::string_view name) { return name.starts_with("karst_") || name.starts_with(".eh_frame"); }
  void add_units(const Section& section) {
    std::vector<std::uint16_t> units(section.bytes.size() / sizeof(std::uint16_t));
    if (!units.empty()) std::memcpy(units.data(), section.bytes.data(), units.size() * sizeof units[0]);
    format::walk_sleds(units.data(), units.size(), section.begin, 0,
                       [&](const format::SledRecord& r, std::uint64_t /*number*/) {
                         traced.push_back(r.address);
                         return true;
                       });
  }
  void add_untraced(const Section& section) {
    for (std::uint64_t i = 0; i + sizeof(std::uint64_t) <= section.bytes.size(); i += sizeof(std::uint64_t))
      traced.push_back(*read<std::uint64_t>(section, section.begin + i));
  }
};

std::uint64_t wide(std::int32_t distance) { return static_cast<std::uint64_t>(std::int64_t{distance}); }

}  // namespace

// Linux Standard Base, "The .eh_frame_hdr section": the table is searched by halving, so it is in order.
bool has_plain_part(const binary::ElfFile& file) {
  constexpr std::uint32_t kUsual = 0x3b031b01;  // version 1; distances of 4 bytes, a count of 4, distances from here
  constexpr std::uint64_t kHeader = 12;
  constexpr std::uint64_t kSizeInFrame = 12;  // behind its length, its common part and its begin
  const auto header = file.header();
  const Sections sections(file);
  if (!header || sections.has_clangs_own) return false;
  const Section& index = sections.index;
  const auto form = read<std::uint32_t>(index, index.begin);
  if (!form) return false;  // nothing is patched without that table
  const auto count = read<std::uint32_t>(index, index.begin + kHeader - sizeof(std::uint32_t));
  if (*form != kUsual || !count) return true;
  struct Entry {
    std::int32_t begin;
    std::int32_t frame;
  };
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto entry = read<Entry>(index, index.begin + kHeader + i * sizeof(Entry));
    if (!entry) return true;
    const std::uint64_t begin = index.begin + wide(entry->begin);
    const std::uint64_t size =
        read<std::uint32_t>(sections.frames, index.begin + wide(entry->frame) + kSizeInFrame).value_or(0);
    if (size < kLeastSize || begin == header->e_entry) continue;
    const auto is_code = [&](const Section& text) { return begin >= text.begin && begin < text.end; };
    if (std::none_of(sections.texts.begin(), sections.texts.end(), is_code)) continue;
    const auto inside = std::lower_bound(sections.traced.begin(), sections.traced.end(), begin);
    if (inside == sections.traced.end() || *inside - begin >= size) return true;
  }
  return false;
}

}  // namespace karst::collect
