// Heads of requests to the viewer's server. What is let through has nothing in it that a line of an answer, or a second
// look, could read in another way.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "engine/server/http_request.h"
#include "fuzz/require.h"

namespace {

using namespace karst;
using fuzz::require;

// What was understood, written down again.
std::string written(const engine::HttpRequest& request) {
  const auto escaped = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      out.append("%");
      out += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4U];
      out += "0123456789abcdef"[static_cast<unsigned char>(c) & 15U];
    }
    return out;
  };
  std::string text = request.head ? "HEAD /" : "GET /";
  text += escaped(std::string_view(request.path).substr(1));
  char before = '?';
  for (const auto& [name, value] : request.parameters) {
    text.append(1, before).append(escaped(name)).append("=").append(escaped(value));
    before = '&';
  }
  text += " HTTP/1.1\r\n";
  for (const auto& [name, value] : request.headers) text.append(name).append(": ").append(value).append("\r\n");
  return text + "\r\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = engine::whole_head(bytes);
  // In whatever pieces it comes, the end is the same.
  std::size_t known = 0;
  auto in_pieces = engine::whole_head(bytes.substr(0, 0));
  for (std::size_t at = 0; at <= size && !in_pieces; at += 1 + at / 3 % 7) {
    in_pieces = engine::whole_head(bytes.substr(0, at), known);
    known = at;
  }
  if (!in_pieces) in_pieces = engine::whole_head(bytes, known);
  require(whole == in_pieces, "a head ends where it ends");
  if (!whole) return 0;
  require(*whole <= size, "a head is not longer than what came");
  const auto parsed = engine::parse_request(bytes.substr(0, *whole));
  if (const auto* refusal = std::get_if<engine::HttpRefusal>(&parsed)) {
    require(refusal->status >= 400 && refusal->status < 500 && !refusal->why.empty(), "a refusal says why");
    return 0;
  }
  const auto& request = std::get<engine::HttpRequest>(parsed);
  require(request.path.starts_with('/'), "paths begin with /");
  require(request.headers.size() <= engine::kMostHeaders && *whole <= engine::kMostHead, "heads are bounded");
  require(request.header("transfer-encoding").empty() && request.header("expect").empty(), "there are no bodies");
  for (const auto& [name, value] : request.headers) {
    const auto harmless = [](char c) { return c != '\r' && c != '\n' && c != '\0'; };
    require(!name.empty() && std::all_of(name.begin(), name.end(), harmless), "names are names");
    require(std::all_of(value.begin(), value.end(), harmless), "values are one line");
  }
  const auto again = engine::parse_request(written(request));
  const auto* same = std::get_if<engine::HttpRequest>(&again);
  // Escaped it may be longer than is allowed.
  if (same == nullptr) {
    require(*whole * 3 > engine::kMostTarget, "what was understood is understood again");
    return 0;
  }
  require(same->path == request.path && same->parameters == request.parameters && same->headers == request.headers &&
              same->head == request.head,
          "and is the same");
  return 0;
}
