// SPDX-License-Identifier: MIT
// One pass over a head that is whole: the line of the request, then a line for each header. Everything is checked
// against RFC 9112's grammar, in the strict reading where it has two.
#include "engine/server/http_request.h"

#include <algorithm>

namespace karst::engine {
namespace {

constexpr std::string_view kEndOfHead = "\r\n\r\n";

bool is_token(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_text(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Nothing: a percent sign without two digits.
std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string_view take_until(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
  return taken;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::optional<HttpRefusal> read_line(std::string_view line, HttpRequest& request) {
  const std::string_view method = take_until(line, " ");
  std::string_view target = take_until(line, " ");
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return HttpRefusal{400, "only HTTP/1.1 is understood"};
  if (method != "GET" && method != "HEAD") return HttpRefusal{405, "only GET is understood"};
  request.head = method == "HEAD";
  request.last = line == "HTTP/1.0";
  if (target.size() > kMostTarget) return HttpRefusal{414, "the address is too long"};
  if (!target.starts_with('/')) return HttpRefusal{400, "the address must begin with /"};
  const auto printable = [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; };
  if (!std::all_of(target.begin(), target.end(), printable))
    return HttpRefusal{400, "the address has a control letter"};
  auto path = decode(take_until(target, "?"), false);
  if (!path) return HttpRefusal{400, "the address has a % without two digits"};
  request.path = std::move(*path);
  while (!target.empty()) {
    std::string_view pair = take_until(target, "&");
    auto name = decode(take_until(pair, "="), true);
    auto value = decode(pair, true);
    if (!name || !value) return HttpRefusal{400, "the address has a % without two digits"};
    if (!name->empty()) request.parameters.emplace(std::move(*name), std::move(*value));
  }
  return std::nullopt;
}

std::optional<HttpRefusal> read_header(std::string_view line, HttpRequest& request) {
  if (request.headers.size() == kMostHeaders) return HttpRefusal{431, "there are too many headers"};
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  // A line that goes on with the one before it begins with a blank, which is no token.
  if (colon == std::string_view::npos || name.empty() || !std::all_of(name.begin(), name.end(), is_token)) {
    return HttpRefusal{400, "a line of the head is no header"};
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), is_text)) return HttpRefusal{400, "a header has a control letter"};
  request.headers.emplace_back(lower(name), value);
  return std::nullopt;
}

}  // namespace

std::size_t HttpRequest::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(), [&](const auto& one) { return one.first == name; }));
}

std::string_view HttpRequest::header(std::string_view name) const {
  const auto at = std::find_if(headers.begin(), headers.end(), [&](const auto& one) { return one.first == name; });
  return at == headers.end() ? std::string_view() : at->second;
}

std::string_view HttpRequest::parameter(std::string_view name) const {
  const auto at = parameters.find(name);
  return at == parameters.end() ? std::string_view() : at->second;
}

std::optional<std::size_t> whole_head(std::string_view bytes, std::size_t known) {
  const std::size_t from = std::min(known, bytes.size());
  const std::size_t at = bytes.find(kEndOfHead, from < kEndOfHead.size() ? 0 : from - kEndOfHead.size() + 1);
  if (at == std::string_view::npos) return std::nullopt;
  return at + kEndOfHead.size();
}

std::variant<HttpRequest, HttpRefusal> parse_request(std::string_view head) {
  HttpRequest request;
  if (head.size() > kMostHead) return HttpRefusal{431, "the head is too long"};
  if (const auto refusal = read_line(take_until(head, "\r\n"), request)) return *refusal;
  while (!head.empty()) {
    const std::string_view line = take_until(head, "\r\n");
    if (line.empty()) break;
    if (const auto refusal = read_header(line, request)) return *refusal;
  }
  // What would follow the head is never read as a body, so there must be none.
  if (request.count("transfer-encoding") != 0 || request.count("expect") != 0 || request.count("upgrade") != 0 ||
      request.count("content-length") > 1 ||
      (request.count("content-length") == 1 && request.header("content-length") != "0")) {
    return HttpRefusal{400, "a request has no body here"};
  }
  request.last = request.last || lower(request.header("connection")).find("close") != std::string::npos;
  return request;
}

}  // namespace karst::engine
