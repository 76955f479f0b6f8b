// SPDX-License-Identifier: MIT
#include "reader/unpack.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace karst::reader {
namespace {

using format::Event;
using format::PackedHeader;

std::uint32_t load3(const unsigned char* at) { return at[0] | at[1] << 8 | at[2] << 16; }

std::uint64_t load5(const unsigned char* at) {
  return load3(at) | std::uint64_t{at[3]} << 24 | std::uint64_t{at[4]} << 32;
}

/// Elements of a stream, one after the other.
class Elements {
 public:
  Elements(const std::vector<unsigned char>& bytes, std::size_t width)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), width_(width) {}
  /// Null when there are no more.
  const unsigned char* next() {
    if (at_ == end_) return nullptr;
    const unsigned char* element = at_;
    at_ += width_;
    return element;
  }
  bool are_over() const { return at_ == end_; }

 private:
  const unsigned char* at_;
  const unsigned char* end_;
  std::size_t width_;
};

}  // namespace

std::string_view refusal_of_packed(const PackedHeader& header, std::size_t payload_size) {
  if (header.event_count > format::kMaxPackedEvents || header.event_count / format::kMaxPackedDensity > payload_size)
    return "has more events than it can hold";
  if (header.blocks == 0 || header.sequence > ~std::uint64_t{0} - header.blocks || header.enters > header.event_count)
    return "has impossible counts";
  std::uint64_t room = payload_size - std::min(payload_size, sizeof(PackedHeader));
  for (std::uint32_t i = 0; i < format::kPackedStreams; ++i) {
    const bool by_event = i == format::kPackedCodes || i == format::kPackedSteps;
    const std::uint64_t most = i == format::kPackedIds ? 254 : header.event_count;
    if (header.stored[i] > room || header.raw[i] < header.stored[i] || header.raw[i] > most * format::kPackedWidth[i] ||
        header.raw[i] % format::kPackedWidth[i] != 0 || (by_event && header.raw[i] != header.event_count))
      return "has streams of impossible sizes";
    room -= header.stored[i];
  }
  return {};
}

struct Unpacker::Decompressor {
  Decompressor() : context(ZSTD_createDCtx()) {}
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { ZSTD_freeDCtx(context); }
  ZSTD_DCtx* context;
};

Unpacker::Unpacker() : decompressor_(std::make_unique<Decompressor>()), stack_(format::kPackedStack + 2) {}
Unpacker::~Unpacker() = default;

bool Unpacker::load_streams(const PackedHeader& header, std::size_t at) {
  for (std::uint32_t i = 0; i < format::kPackedStreams; ++i) {
    streams_[i].resize(header.raw[i]);
    const std::byte* stored = payload_.data() + at;
    at += header.stored[i];
    if (header.raw[i] == header.stored[i]) {
      std::copy_n(stored, header.raw[i], reinterpret_cast<std::byte*>(streams_[i].data()));
      continue;
    }
    if (decompressor_->context == nullptr ||
        ZSTD_decompressDCtx(decompressor_->context, streams_[i].data(), header.raw[i], stored, header.stored[i]) !=
            header.raw[i])
      return false;
  }
  return true;
}

bool Unpacker::unpack(std::span<const std::byte> payload) {
  count_ = 0;
  if (payload.size() < sizeof(PackedHeader)) return false;
  payload_.assign(payload.begin(), payload.end());
  PackedHeader header;
  std::memcpy(&header, payload_.data(), sizeof header);
  if (!refusal_of_packed(header, payload_.size()).empty() || !load_streams(header, sizeof header)) return false;
  if (capacity_ < header.event_count) {
    capacity_ = std::max<std::size_t>(header.event_count, 1 << 16);
    events_ = std::make_unique_for_overwrite<Event[]>(capacity_);
  }
  if (!decode(header)) return false;
  count_ = header.event_count;
  return true;
}

bool Unpacker::decode(const PackedHeader& header) {
  using namespace format;
  Elements wide(streams_[kPackedWide], kPackedWidth[kPackedWide]);
  Elements long_steps(streams_[kPackedLong], kPackedWidth[kPackedLong]);
  Elements words(streams_[kPackedWords], kPackedWidth[kPackedWords]);
  Elements payloads(streams_[kPackedPayloads], kPackedWidth[kPackedPayloads]);
  std::uint32_t ids[256] = {};
  for (std::size_t i = 0; i < streams_[kPackedIds].size() / 3; ++i)
    ids[i + 1] = load3(streams_[kPackedIds].data() + 3 * i) & KARST_EVENT_ID_MASK;

  const unsigned char* const codes = streams_[kPackedCodes].data();
  const unsigned char* const steps = streams_[kPackedSteps].data();
  std::uint32_t* const stack = stack_.data();
  stack[0] = 0;
  Event* const out = events_.get();
  std::uint32_t top = 1;  // the stack's element 0 is nobody's, and the last one takes what finds no room
  std::uint64_t ticks = header.ticks;
  for (std::uint32_t i = 0; i < header.event_count; ++i) {
    const std::uint32_t code = codes[i];
    std::uint64_t step = steps[i];
    if (step >= kStepWide) [[unlikely]] {
      const bool is_wide = step == kStepWide;
      const unsigned char* element = is_wide ? wide.next() : long_steps.next();
      if (element == nullptr) return false;
      step = is_wide ? kStepWide + (element[0] | std::uint64_t{element[1]} << 8) : load5(element);
    }
    ticks += step;
    if (code == kCodeWord) [[unlikely]] {
      const unsigned char* element = words.next();
      if (element == nullptr) return false;
      const Event word = load3(element);
      if (word == 0) {
        out[i] = 0;
      } else if (!event_has_time(word)) {
        const unsigned char* payload = payloads.next();
        if (payload == nullptr) return false;
        out[i] = load5(payload) << KARST_EVENT_TICK_SHIFT | word;
      } else {
        out[i] = ticks << KARST_EVENT_TICK_SHIFT | word;
        if (!event_is_exit(word)) {
          stack[top] = event_function(word);
          top += top <= kPackedStack ? 1 : 0;
        } else if (!event_is_mark(word)) {
          top -= top > 1 ? 1 : 0;
        }
      }
      continue;
    }
    // Without a branch: an exit takes the id from the stack, an enter puts it there.
    const std::uint32_t exits = code == kCodeExit ? 1 : 0;
    if (top == exits) return false;
    top -= exits;
    const std::uint32_t id = exits != 0 ? stack[top] : ids[code];
    stack[top] = id;
    top += 1 - exits;
    if (top > kPackedStack + 1) top = kPackedStack + 1;
    out[i] = ticks << KARST_EVENT_TICK_SHIFT | exits << 23 | id;
  }
  return wide.are_over() && long_steps.are_over() && words.are_over() && payloads.are_over();
}

}  // namespace karst::reader
