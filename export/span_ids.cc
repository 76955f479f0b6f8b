// SPDX-License-Identifier: MIT
#include "export/span_ids.h"

#include <fmt/format.h>

namespace karst::exporting {
namespace {

/// Lower case alone, as W3C has it.
std::optional<std::uint64_t> number_of_hex(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char c : digits) {
    const bool is_letter = c >= 'a' && c <= 'f';
    if (!is_letter && (c < '0' || c > '9')) return std::nullopt;
    number = number << 4U | static_cast<std::uint64_t>(is_letter ? c - 'a' + 10 : c - '0');
  }
  return number;
}

}  // namespace

std::optional<TraceParent> parse_traceparent(std::string_view text) {
  constexpr std::size_t kSize = 55;
  if (text.size() < kSize || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const auto version = number_of_hex(text.substr(0, 2)), flags = number_of_hex(text.substr(53, 2));
  const auto high = number_of_hex(text.substr(3, 16)), low = number_of_hex(text.substr(19, 16));
  const auto span = number_of_hex(text.substr(36, 16));
  if (!version || !flags || !high || !low || !span || *version == 0xff) return std::nullopt;
  // A later version may go on behind another dash.
  if (text.size() != kSize && (*version == 0 || text[kSize] != '-')) return std::nullopt;
  if ((*high | *low) == 0 || *span == 0) return std::nullopt;
  return TraceParent{{*high, *low}, *span};
}

std::string hex_of(std::uint64_t id) { return fmt::format("{:016x}", id); }

std::uint64_t id_of(std::initializer_list<std::uint64_t> numbers) {
  std::uint64_t id = 0;
  for (const std::uint64_t number : numbers) {  // splitmix64
    id += number + 0x9e3779b97f4a7c15ULL;
    id = (id ^ id >> 30U) * 0xbf58476d1ce4e5b9ULL;
    id = (id ^ id >> 27U) * 0x94d049bb133111ebULL;
    id ^= id >> 31U;
  }
  return id == 0 ? 1 : id;
}

}  // namespace karst::exporting
