// SPDX-License-Identifier: MIT
#include "engine/remote/frames.h"

#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "engine/protocol.h"

namespace karst::engine {
namespace {

constexpr std::string_view kHelloBegin = "karst-frames ";
constexpr std::size_t kFrameHead = 9;         // bytes: size, kind, number
constexpr std::size_t kMostNoise = 64 << 10;  // bytes before the hello
constexpr std::size_t kLeastPacked = 200;     // bytes; less is not worth it
constexpr int kQuick = 1;                     // zstd's level
constexpr int kStatusLeast = 200;
constexpr int kStatusMost = 599;

void put(std::string& to, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) to += static_cast<char>(value >> (8 * i));
}

std::uint32_t get(const char* from) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(from[i]);
  return value;
}

void put_text(std::string& to, std::string_view text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  to += text;
}

/// Texts and numbers, one behind the other.
class Parts {
 public:
  explicit Parts(std::string_view bytes) : left_(bytes) {}
  bool more() const { return !left_.empty(); }
  std::optional<std::uint32_t> number() {
    if (left_.size() < 4) return std::nullopt;
    const std::uint32_t value = get(left_.data());
    left_.remove_prefix(4);
    return value;
  }
  std::optional<std::string> text() {
    const auto size = number();
    if (!size || *size > left_.size()) return std::nullopt;
    std::string text(left_.substr(0, *size));
    left_.remove_prefix(*size);
    return text;
  }

 private:
  std::string_view left_;
};

std::optional<std::uint32_t> number_of(std::string_view& text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return value;
}

/// The types that answers have. Of any other, as text/html, a browser could make more than data.
std::string known_type(const std::string& type) {
  constexpr std::array kKnown = {"application/json; charset=utf-8", "application/octet-stream", "text/event-stream"};
  for (const char* const known : kKnown)
    if (type == known) return type;
  return "application/octet-stream";
}

}  // namespace

std::string hello_line(const Hello& hello) {
  return std::string(kHelloBegin) + std::to_string(hello.oldest) + " " + std::to_string(hello.newest) + " " +
         hello.version + "\n";
}

std::optional<Hello> parse_hello(std::string_view line) {
  if (!line.starts_with(kHelloBegin)) return std::nullopt;
  line.remove_prefix(kHelloBegin.size());
  const auto oldest = number_of(line);
  const auto newest = oldest ? number_of(line) : std::nullopt;
  if (!newest || line.empty()) return std::nullopt;
  return Hello{*oldest, *newest, std::string(line)};
}

Hello own_hello(std::string version) { return {kProtocolVersion - 1, kProtocolVersion, std::move(version)}; }

bool understands(const Hello& far) {
  const Hello own = own_hello({});
  return far.newest >= own.oldest && far.oldest <= own.newest;
}

bool FrameReader::read(char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(descriptor_, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

std::optional<Hello> FrameReader::hello() {
  std::string line;
  for (std::size_t seen = 0; seen < kMostNoise; ++seen) {
    char next = 0;
    if (!read(&next, 1)) return std::nullopt;
    if (next != '\n') {
      line += next;
      continue;
    }
    if (auto hello = parse_hello(line)) return hello;
    line.clear();
  }
  return std::nullopt;
}

Result<std::optional<Frame>> FrameReader::next() {
  std::array<char, kFrameHead> head;
  if (!read(head.data(), head.size())) return std::optional<Frame>();
  constexpr std::size_t kOfSize = 5;  // what `size` counts beside the bytes
  const std::size_t size = get(head.data());
  const auto kind = static_cast<std::uint8_t>(head[4]);
  if (size < kOfSize || size - kOfSize > kMostFrame || kind < static_cast<std::uint8_t>(FrameKind::kTarget) ||
      kind > static_cast<std::uint8_t>(FrameKind::kEnd))
    return Error{"what came is no frame of karst's"};
  Frame frame{static_cast<FrameKind>(kind), get(head.data() + kOfSize), std::string(size - kOfSize, '\0')};
  if (!read(frame.bytes.data(), frame.bytes.size())) return std::optional<Frame>();
  return std::optional<Frame>(std::move(frame));
}

bool FrameWriter::send_raw(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool FrameWriter::send(FrameKind kind, std::uint32_t question, std::string_view bytes) {
  std::string frame;
  frame.reserve(kFrameHead + bytes.size());
  put(frame, static_cast<std::uint32_t>(bytes.size() + 5));
  frame += static_cast<char>(kind);
  put(frame, question);
  frame += bytes;
  return send_raw(frame);
}

bool FrameWriter::send_body(std::uint32_t question, std::string_view bytes) {
  std::string packed;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kMostFrame);
    bytes.remove_prefix(piece.size());
    packed.clear();
    if (piece.size() >= kLeastPacked) {
      put(packed, static_cast<std::uint32_t>(piece.size()));
      packed.resize(4 + ::ZSTD_compressBound(piece.size()));
      const std::size_t size =
          ::ZSTD_compress(packed.data() + 4, packed.size() - 4, piece.data(), piece.size(), kQuick);
      packed.resize(::ZSTD_isError(size) != 0 ? 0 : 4 + size);
    }
    const bool smaller = !packed.empty() && packed.size() < piece.size();
    if (!send(smaller ? FrameKind::kPacked : FrameKind::kBody, question, smaller ? packed : piece)) return false;
  }
  return true;
}

std::optional<std::string> unpack_body(std::string_view packed) {
  Parts parts(packed);
  const auto size = parts.number();
  if (!size || *size > kMostFrame) return std::nullopt;
  packed.remove_prefix(4);
  std::string bytes(*size, '\0');
  const std::size_t got = ::ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
  if (got != bytes.size()) return std::nullopt;  // an error is a number that is larger
  return bytes;
}

std::string question_bytes(std::string_view path, const Parameters& parameters) {
  std::string bytes;
  put_text(bytes, path);
  for (const auto& [name, value] : parameters) {
    put_text(bytes, name);
    put_text(bytes, value);
  }
  return bytes;
}

std::optional<FrameQuestion> parse_question(std::string_view bytes) {
  Parts parts(bytes);
  auto path = parts.text();
  if (!path) return std::nullopt;
  FrameQuestion question{std::move(*path), {}};
  while (parts.more()) {
    auto name = parts.text();
    auto value = parts.text();
    if (!name || !value) return std::nullopt;
    question.parameters.emplace(std::move(*name), std::move(*value));
  }
  return question;
}

std::string head_bytes(const Reply& reply, bool goes_on) {
  std::string bytes;
  put(bytes, static_cast<std::uint32_t>(reply.status));
  put(bytes, goes_on ? 1 : 0);
  put_text(bytes, reply.type);
  put_text(bytes, reply.file_name);
  return bytes;
}

std::optional<FrameHead> parse_head(std::string_view bytes) {
  Parts parts(bytes);
  const auto status = parts.number();
  const auto goes_on = parts.number();
  auto type = parts.text();
  auto name = parts.text();
  if (!status || !goes_on || !type || !name || *status < kStatusLeast || *status > kStatusMost) return std::nullopt;
  FrameHead head;
  head.reply.status = static_cast<int>(*status);
  head.reply.type = known_type(*type);
  constexpr std::size_t kMostName = 200;
  head.reply.file_name = name->substr(0, kMostName);
  std::replace(head.reply.file_name.begin(), head.reply.file_name.end(), '/', '_');
  head.goes_on = *goes_on != 0;
  return head;
}

}  // namespace karst::engine
