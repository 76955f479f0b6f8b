// SPDX-License-Identifier: MIT
// Blocks of many threads put together to packs, each of one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "format/event.h"
#include "format/trace.h"
#include "write/pack.h"

namespace karst::writing {

/// One thread at a time.
class Packs {
 public:
  /// What is done with the payload of a PACK chunk, which is good for the call.
  using Sink = std::function<void(const format::PackedHeader& header, std::span<const std::byte> payload)>;
  explicit Packs(Sink sink) : sink_(std::move(sink)) {}

  /// `head` says where `events` belong; it has none itself. Blocks of a thread are to come in rising order.
  void add(const Pack& head, std::span<const format::Event> events);
  /// Hands on all that waits for others of its thread.
  void flush();
  /// Events that wait.
  std::size_t waiting() const { return waiting_; }

 private:
  void hand_on(Pack& pack);

  Sink sink_;
  Packer packer_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Pack> packs_;  // by process and thread
  std::size_t waiting_ = 0;
};

}  // namespace karst::writing
