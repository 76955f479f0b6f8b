// SPDX-License-Identifier: MIT
#include "collect/record/growing_trace.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace karst::collect {

GrowingTrace::GrowingTrace(writing::TraceWriter& writer, Events events)
    : writer_(writer), events_(std::move(events)), file_(writer.duplicate()) {
  writer.pack_events([this](const format::PackedHeader& header, std::uint64_t offset, std::uint32_t size) {
    places_[header.process].push_back({header.thread, header.blocks, header.sequence, header.ticks, offset, size});
  });
}

std::uint32_t GrowingTrace::add_process() {
  places_.emplace_back();
  return static_cast<std::uint32_t>(places_.size() - 1);
}

void GrowingTrace::fail(std::string why) {
  failure_ = std::move(why);
  for (std::vector<Place>& places : places_)
    std::erase_if(places, [end = writer_.size()](const Place& place) { return place.offset >= end; });
}

// Whatever ends us, times of what is there can be told.
void GrowingTrace::add_clock_reading() {
  constexpr auto kReadings = std::chrono::seconds(10);
  if (Time::now() < next_reading_) return;
  next_reading_ = Time::now() + kReadings;
  const ClockPair now = read_clock_pair();
  Clock clock = make_clock({begin_, now});
  clock.pairs = {now};
  writer_.add_clock(clock);
}

void GrowingTrace::flush() {
  next_flush_ = Time::now() + (has_events_ ? kFlushEvery : kFirstFlush);
  if (!failure_.empty() || !has_events_) return;
  const bool is_first = !writer_.grows();
  if (is_first) {
    if (events_.begins) events_.begins();
    if (const Status grown = writer_.grow(); !grown) return fail(grown.error().message);
  }
  add_clock_reading();
  writer_.flush();
  if (std::string why = writer_.cut_back(); !why.empty()) fail(std::move(why));
  if (is_first && events_.begun) events_.begun();
}

bool GrowingTrace::read(const Place& place, std::vector<std::byte>& payload) const {
  payload.resize(place.size);
  for (std::size_t got = 0; got < payload.size();) {
    const ssize_t n =
        ::pread(file_.get(), payload.data() + got, payload.size() - got, static_cast<off_t>(place.offset + got));
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace karst::collect
