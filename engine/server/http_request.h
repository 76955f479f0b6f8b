// SPDX-License-Identifier: MIT
// A request as the viewer's server understands it: the head of a GET or HEAD of HTTP/1.1 and nothing more.
//
// Pages that Karst ships are all who ask, so what they never send is refused and not interpreted: bodies, other
// methods, folded headers, absolute addresses. Ranges are ignored, as RFC 9110 allows: the answer is the whole.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/api/api.h"

namespace karst::engine {

inline constexpr std::size_t kMostHead = 64 << 10;    ///< bytes; cookies of other servers on this machine come along
inline constexpr std::size_t kMostTarget = 32 << 10;  ///< bytes of the path with its query, which may be SQL
inline constexpr std::size_t kMostHeaders = 100;      ///< lines

struct HttpRequest {
  std::string path;                                          ///< decoded
  Parameters parameters;                                     ///< decoded
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  bool head = false;                                         ///< HEAD: the answer has no body
  bool last = false;                                         ///< the client closes the connection afterwards

  std::size_t count(std::string_view name) const;
  /// The first of this name; empty: there is none.
  std::string_view header(std::string_view name) const;
  bool has(std::string_view parameter) const { return parameters.contains(parameter); }
  std::string_view parameter(std::string_view name) const;
};

/// Why a head is no request that can be answered.
struct HttpRefusal {
  int status;
  std::string_view why;
};

/// The size of the first head in `bytes`, with the empty line that ends it. Nothing: it is not whole. `known`: so many
/// bytes were looked at before.
std::optional<std::size_t> whole_head(std::string_view bytes, std::size_t known = 0);

/// Requires a head as whole_head() finds it. Throws std::bad_alloc alone.
std::variant<HttpRequest, HttpRefusal> parse_request(std::string_view head);

}  // namespace karst::engine
