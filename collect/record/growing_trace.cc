// SPDX-License-Identifier: MIT
#include "collect/record/growing_trace.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "kernel/quiet_thread.h"

namespace karst::collect {

GrowingTrace::GrowingTrace(writing::TraceWriter& writer, Events events, const Rotation& rotation)
    : writer_(writer), events_(std::move(events)), rotation_(rotation) {
  pack();
}

void GrowingTrace::pack() {
  file_ = writer_.duplicate();
  writer_.pack_events([this](const format::PackedHeader& header, std::uint64_t offset, std::uint32_t size) {
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
  Clock clock = make_clock({first_, now});
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

std::uint64_t GrowingTrace::to_ticks(std::chrono::nanoseconds time) const {
  const std::uint64_t rate = make_clock({first_, read_clock_pair()}).ticks_per_second;
  return static_cast<std::uint64_t>(static_cast<double>(time.count()) * 1e-9 * static_cast<double>(rate));
}

std::chrono::nanoseconds GrowingTrace::waited() const {
  const std::uint64_t second = std::max<std::uint64_t>(to_ticks(std::chrono::seconds(1)), 1);
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(static_cast<double>(waited_) * 1e9 / static_cast<double>(second)));
}

bool GrowingTrace::is_file_full() const {
  if (!rotates() || is_finishing_) return false;  // the ring cannot wait until the one before is whole
  // A disk that was full may have room again.
  constexpr auto kTryAgain = std::chrono::seconds(10);
  const auto age = Time::now() - file_began_;
  if (!failure_.empty()) return age >= kTryAgain;
  return has_events_ && ((rotation_.bytes != 0 && writer_.size() >= rotation_.bytes) ||
                         (rotation_.time.count() != 0 && age >= rotation_.time));
}

void GrowingTrace::end_file() {
  flush();
  if (failure_.empty()) {
    next_reading_ = {};
    add_clock_reading();
    if (add_rest_) add_rest_(writer_, files_ == 0 ? begin_.ticks : earliest(), read_clock_pair().ticks);
  }
  finish_older();
  auto next = events_.next();
  if (!next) {
    file_began_ = Time::now();
    return fail(next.error().message);
  }
  if (writer_.grows())
    finish_in_background(std::exchange(writer_, std::move(*next)));
  else
    writer_ = std::move(*next);
  begin_file();
}

// Bringing it to the disk takes seconds, in which the ring is to be emptied.
void GrowingTrace::finish_in_background(writing::TraceWriter writer) {
  ++files_;
  auto shared = std::make_shared<writing::TraceWriter>(std::move(writer));
  const auto finish = [this, shared] {
    if (const Status kept = shared->keep_events(); !kept) problems_.push_back({kept.error().message, 1});
    if (events_.whole) events_.whole();
    is_finishing_ = false;
  };
  is_finishing_ = true;
  finishing_ = kernel::start_thread("karst-finish", finish);
  if (!finishing_.joinable()) finish();
}

void GrowingTrace::leave_out_older(reader::StateLog& states, reader::SampleLog& samples,
                                   reader::UsageLog& usage) const {
  if (files_ == 0) return;
  constexpr std::uint64_t kEnd = ~std::uint64_t{0};
  states = reader::excerpt_states(states, earliest(), kEnd);
  samples = reader::excerpt_samples(samples, earliest(), kEnd);
  usage = reader::excerpt_usage(usage, earliest(), kEnd);
}

void GrowingTrace::finish_older() {
  if (finishing_.joinable()) finishing_.join();
}

void GrowingTrace::begin_file() {
  file_began_ = Time::now();
  failure_.clear();
  places_.clear();
  has_events_ = false;
  begin_ = read_clock_pair();
  next_reading_ = {};
  next_flush_ = Time::now() + kFirstFlush;
  pack();
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
