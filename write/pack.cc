// SPDX-License-Identifier: MIT
#include "write/pack.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "format/note.h"
#include "reader/stored_block.h"

namespace karst::writing {
namespace {

using format::Event;
using format::PackedHeader;

// Measured: of higher levels the streams become a hundredth smaller, and take twice the time.
constexpr int kPackedLevel = 1;
constexpr std::size_t kUsualPack = std::size_t{1} << 16;  // events
constexpr std::size_t kWorthPacking = 64;                 // bytes of a stream

void put_number(std::vector<unsigned char>& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<unsigned char>(value >> (8 * i)));
}

/// The bit of PackedHeader::notes for what begins at `at`; 0: nothing that it tells of.
std::uint32_t note_bit(std::span<const Event> events, std::size_t at) {
  const auto is = [&](format::Mark mark) { return format::event_is(events[at], mark); };
  if (is(format::Mark::kSetPlace) || is(format::Mark::kSwitched) || is(format::Mark::kJumped)) return 1;
  if (!is(format::Mark::kNoteHead)) return 0;
  const auto kind = static_cast<std::uint32_t>(format::note_head(events[at]).kind);
  return std::uint32_t{1} << (kind != 0 && kind < 31 ? kind : 31);
}

}  // namespace

bool Pack::takes(std::uint64_t next, std::uint64_t ticks_of_next, std::size_t count) const {
  return sequence + blocks == next && ticks >> KARST_EVENT_TICK_BITS == ticks_of_next >> KARST_EVENT_TICK_BITS &&
         events.size() + count <= kUsualPack;
}

struct Packer::Compressor {
  Compressor() : context(ZSTD_createCCtx()) {}
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  ~Compressor() { ZSTD_freeCCtx(context); }
  ZSTD_CCtx* context;
};

Packer::Packer() : compressor_(std::make_unique<Compressor>()), stack_(format::kPackedStack + 2) {}
Packer::~Packer() = default;

/// The functions that are entered most get codes.
void Packer::choose_ids(std::span<const Event> events) {
  ids_.clear();
  for (const Event event : events) {
    if (format::event_is_exit(event)) continue;
    const std::uint32_t id = format::event_function(event);
    if (id >= counts_.size()) {
      counts_.resize(id + std::size_t{1} + id / 2);
      codes_of_.resize(counts_.size(), format::kCodeWord);
    }
    if (counts_[id]++ == 0) ids_.push_back(id);
  }
  std::sort(ids_.begin(), ids_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
  });
  constexpr std::size_t kMostCodes = format::kCodeWord - 1;
  std::vector<unsigned char>& table = streams_[format::kPackedIds];
  unsigned char code = 0;
  for (const std::uint32_t id : std::span(ids_).first(std::min(ids_.size(), kMostCodes))) {
    codes_of_[id] = ++code;
    put_number(table, id, format::kPackedWidth[format::kPackedIds]);
  }
}

void Packer::forget_ids() {
  for (const std::uint32_t id : ids_) {
    counts_[id] = 0;
    codes_of_[id] = format::kCodeWord;
  }
}

void Packer::write_streams(const Pack& pack, PackedHeader& header) {
  using namespace format;
  std::vector<unsigned char>& codes = streams_[kPackedCodes];
  std::vector<unsigned char>& steps = streams_[kPackedSteps];
  codes.resize(pack.events.size());
  steps.resize(pack.events.size());
  const auto put = [this](PackedStream stream, std::uint64_t value) {
    put_number(streams_[stream], value, kPackedWidth[stream]);
  };
  std::uint32_t top = 1;  // as in Unpacker::decode()
  std::uint64_t ticks = pack.ticks & kEventTickMask;
  for (std::size_t i = 0; i < pack.events.size(); ++i) {
    const Event event = pack.events[i];
    const auto word = static_cast<std::uint32_t>(event & (KARST_EVENT_EXIT_BIT | KARST_EVENT_ID_MASK));
    const std::uint32_t id = event_function(event);
    header.enters += event_is_exit(event) ? 0 : 1;
    codes[i] = kCodeWord;
    if (event_is_mark(event)) header.notes |= note_bit(pack.events, i);
    if (word == 0 || !event_has_time(event)) {
      steps[i] = 0;
      put(kPackedWords, word);
      if (word != 0) put(kPackedPayloads, event >> KARST_EVENT_TICK_SHIFT);
      continue;
    }
    if (!event_is_exit(event)) {
      codes[i] = codes_of_[id];
      stack_[top] = id;
      top += top <= kPackedStack ? 1 : 0;
    } else if (!event_is_mark(event) && top > 1) {
      if (stack_[--top] == id) codes[i] = kCodeExit;
    }
    if (codes[i] == kCodeWord) put(kPackedWords, word);

    const std::uint64_t now = event >> KARST_EVENT_TICK_SHIFT;
    const std::uint64_t step = (now - ticks) & kEventTickMask;
    ticks = now;
    steps[i] = static_cast<unsigned char>(step);
    if (step < kStepWide) continue;
    if (step - kStepWide < 1 << 16) {
      steps[i] = kStepWide;
      put(kPackedWide, step - kStepWide);
    } else {
      steps[i] = kStepLong;
      put(kPackedLong, step);
    }
  }
}

void Packer::put_stream(std::span<const unsigned char> raw, std::uint32_t& stored_size, std::uint32_t& raw_size) {
  raw_size = stored_size = static_cast<std::uint32_t>(raw.size());
  const std::size_t at = payload_.size();
  if (raw.size() >= kWorthPacking && compressor_->context != nullptr) {
    payload_.resize(at + ZSTD_compressBound(raw.size()));
    const std::size_t n = ZSTD_compressCCtx(compressor_->context, payload_.data() + at, payload_.size() - at,
                                            raw.data(), raw.size(), kPackedLevel);
    if (ZSTD_isError(n) == 0 && n < raw.size()) stored_size = static_cast<std::uint32_t>(n);
  }
  payload_.resize(at + stored_size);
  if (stored_size == raw_size)
    std::copy(raw.begin(), raw.end(), reinterpret_cast<unsigned char*>(payload_.data()) + at);
}

std::span<const std::byte> Packer::pack(const Pack& pack) {
  PackedHeader header{};
  header.process = pack.process;
  header.thread = pack.thread;
  header.sequence = pack.sequence;
  header.ticks = header.first_ticks = header.last_ticks = pack.ticks;
  header.blocks = pack.blocks;
  header.event_count = static_cast<std::uint32_t>(pack.events.size());
  const auto first = std::find_if(pack.events.begin(), pack.events.end(), reader::tells_time);
  if (first != pack.events.end()) {
    header.first_ticks = format::event_ticks(*first, pack.ticks);
    header.last_ticks =
        format::event_ticks(*std::find_if(pack.events.rbegin(), pack.events.rend(), reader::tells_time), pack.ticks);
  }
  for (auto& stream : streams_) stream.clear();
  choose_ids(pack.events);
  write_streams(pack, header);
  forget_ids();
  payload_.resize(sizeof header);
  for (std::uint32_t i = 0; i < format::kPackedStreams; ++i) put_stream(streams_[i], header.stored[i], header.raw[i]);
  payload_.resize(std::max<std::size_t>(payload_.size(), header.event_count / format::kMaxPackedDensity));
  std::memcpy(payload_.data(), &header, sizeof header);
  return payload_;
}

}  // namespace karst::writing
