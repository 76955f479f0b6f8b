// SPDX-License-Identifier: MIT
#include "cli/input/far_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace karst::cli {
namespace {

constexpr std::string_view kScheme = "ssh://";
constexpr unsigned kMostPort = 65535;

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port <= kMostPort;
}

/// What ssh takes for a host, and never for an option or for two words.
bool is_host(std::string_view text) {
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-:%@+").find(c) != std::string_view::npos;
  });
}

}  // namespace

bool is_far_address(std::string_view text) { return text.starts_with(kScheme); }

Result<FarAddress> parse_far_address(std::string_view text) {
  const std::string given(text);
  text.remove_prefix(kScheme.size());
  const std::size_t slash = text.find('/');
  if (slash == text.npos || slash + 1 == text.size())
    return Error{
        fmt::format("{} names nothing to look at: write ssh://HOST/FILE, or a process's number or name", given)};
  FarAddress address;
  address.target = text.substr(slash + 1);
  text = text.substr(0, slash);
  // A port is behind the last colon, unless that is within the brackets of an IPv6 address.
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.rfind(':');
  if (colon != text.npos && (bracket == text.npos || colon > bracket)) {
    address.port = text.substr(colon + 1);
    text = text.substr(0, colon);
    if (!is_port(address.port)) return Error{fmt::format("{} is no port of {}", address.port, given)};
  }
  std::string_view host = text.substr(text.rfind('@') == text.npos ? 0 : text.rfind('@') + 1);
  std::string_view user = text.substr(0, text.size() - host.size());
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (!is_host(host) || (!user.empty() && !is_host(user)) || user == "@")
    return Error{fmt::format("{} names no machine: write ssh://[USER@]HOST[:PORT]/FILE", given)};
  address.destination = fmt::format("{}{}", user, host);
  return address;
}

}  // namespace karst::cli
