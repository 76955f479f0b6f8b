// SPDX-License-Identifier: MIT
// Identities of spans as W3C's Trace Context and OpenTelemetry have them: 16 bytes of a trace, 8 of a span, in hex.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace karst::exporting {

using TraceId = std::array<std::uint64_t, 2>;

/// What the header `traceparent` says: whose span the work is for.
struct TraceParent {
  TraceId trace;
  std::uint64_t span;
};

/// What a text of a request begins with that is its header (karst_request_context).
inline constexpr std::string_view kTraceParentHeader = "traceparent: ";

/// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. Nothing where it is none by W3C's rules.
std::optional<TraceParent> parse_traceparent(std::string_view text);

std::string hex_of(std::uint64_t id);
inline std::string hex_of(const TraceId& id) { return hex_of(id[0]) + hex_of(id[1]); }

/// The same for the same numbers, and not 0. Numbers that were made by accident do not meet.
std::uint64_t id_of(std::initializer_list<std::uint64_t> numbers);

}  // namespace karst::exporting
