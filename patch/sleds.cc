// SPDX-License-Identifier: MIT
#include "patch/sleds.h"

#include <algorithm>
#include <cstring>

#include "format/sled_note.h"

namespace karst::patch {
namespace {

constexpr std::uint64_t kGccs = 5;  // bytes of a sled
constexpr std::uint64_t kClangs = 11;

template <typename T>
std::vector<T> records_of(const ElfImage& image, const char* section) {
  const auto bytes = image.contents(section);
  std::vector<T> records(bytes.size() / sizeof(T));
  if (!records.empty()) std::memcpy(records.data(), bytes.data(), records.size() * sizeof(T));
  return records;
}

}  // namespace

Sleds sleds_of(const ElfImage& image) {
  Sleds sleds;
  const auto add = [&](const char* section, std::uint64_t size) {
    const auto units = records_of<std::uint16_t>(image, section);
    format::walk_sleds(units.data(), units.size(), image.section_address(section), 0,
                       [&](const format::SledRecord& r, std::uint64_t /*number*/) {
                         sleds.code.push_back({r.address, r.address + size});
                         return true;
                       });
  };
  add("karst_sleds", kGccs);
  add("karst_clang_sleds", kClangs);
  std::uint64_t at = image.section_address("xray_instr_map");
  for (const auto& record : records_of<format::XRayRecord>(image, "xray_instr_map")) {
    const std::uint64_t sled = at + static_cast<std::uint64_t>(record.address);
    sleds.code.push_back({sled, sled + kClangs});
    at += sizeof record;
  }
  std::sort(sleds.code.begin(), sleds.code.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  sleds.untraced = records_of<std::uint64_t>(image, KARST_UNTRACED_SECTION);
  std::sort(sleds.untraced.begin(), sleds.untraced.end());
  return sleds;
}

}  // namespace karst::patch
