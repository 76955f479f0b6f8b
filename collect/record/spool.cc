// SPDX-License-Identifier: MIT
#include "collect/record/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "format/note.h"
#include "format/trace.h"

namespace karst::collect {

Result<std::shared_ptr<SpoolFile>> SpoolFile::create(const std::filesystem::path& directory) {
  const std::filesystem::path where = directory.empty() ? std::filesystem::path(".") : directory;
  Descriptor file(::open(where.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file)
    return Error{"no file for all calls can be made in " + where.string() + ": " + std::strerror(errno) +
                 "; put the trace elsewhere (-o), or leave --all out"};
  return std::shared_ptr<SpoolFile>(new SpoolFile(std::move(file)));
}

bool SpoolFile::append(std::span<const std::byte> bytes, std::uint64_t& offset) {
  offset = size_;
  while (failure_.empty() && !bytes.empty()) {
    const ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n > 0) {
      size_ += static_cast<std::uint64_t>(n);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      failure_ = std::strerror(n == 0 ? ENOSPC : errno);
    }
  }
  return failure_.empty();
}

bool SpoolFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
    if (n < 0) continue;
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Spool::Spool(std::shared_ptr<SpoolFile> file)
    : file_(std::move(file)),
      packs_([this](const format::PackedHeader& header, std::span<const std::byte> payload) { put(header, payload); }) {
}

void Spool::put(const format::PackedHeader& header, std::span<const std::byte> payload) {
  Place place{0, static_cast<std::uint32_t>(payload.size())};
  if (!file_->append(payload, place.offset)) return;
  places_.push_back(place);
  ArenaBlock block;
  block.index = static_cast<std::uint32_t>(blocks_.size());
  block.thread = header.thread;
  block.sequence = header.sequence;
  block.ticks = header.ticks;
  block.blocks = header.blocks;
  blocks_.push_back(block);
}

bool Spool::is_due(const ArenaView& arena) const {
  constexpr std::uint64_t kOftener = 8;  // than the arena is full
  return file_->failure().empty() && arena.blocks_handed_out() - handed_out_ >= arena.block_capacity() / kOftener;
}

std::size_t Spool::drain(const ArenaView& arena) {
  if (!file_->failure().empty()) return 0;
  handed_out_ = arena.blocks_handed_out();
  const std::vector<ArenaBlock> blocks = arena.ring_blocks();
  std::map<std::uint32_t, std::uint64_t> newest;  // which the thread may write to
  for (const ArenaBlock& block : blocks) {
    std::uint64_t& last = newest[block.thread];
    last = std::max(last, block.sequence);
  }
  seen_.resize(std::max<std::size_t>(seen_.size(), arena.function_count() + std::size_t{1}));
  // Blocks that threads began while the list was made may lack in it, though later ones are there: what is missing
  // twice is gone.
  std::map<std::uint32_t, std::uint64_t> missing;
  std::size_t taken = 0;
  for (const ArenaBlock& block : blocks) {
    std::uint64_t& next = next_[block.thread];
    if (block.sequence < next || block.sequence == newest[block.thread]) continue;
    const auto lacked = missing_.find(block.thread);
    if (block.sequence != next && (lacked == missing_.end() || lacked->second != next)) {
      missing.emplace(block.thread, next);
      continue;
    }
    const auto events = arena.read(block, buffer_);
    if (events.data() == nullptr) continue;  // it was late
    for (const format::Event event : events)
      if (const std::uint32_t id = format::named_function(event); id < seen_.size()) seen_[id] = true;
    packs_.add({0, block.thread, block.sequence, 1, block.ticks}, events);
    next = block.sequence + 1;
    ++taken;
  }
  missing_ = std::move(missing);
  return taken;
}

std::span<const format::Event> Spool::read(std::size_t number) {
  if (at_hand_ == number) return unpacker_.events();
  at_hand_ = number;
  std::vector<std::byte> payload(places_[number].size);
  if (!file_->read(places_[number].offset, payload) || !unpacker_.unpack(payload)) at_hand_ = ~std::size_t{0};
  return unpacker_.events();
}

bool Spool::has(std::uint32_t thread, std::uint64_t sequence) const {
  const auto next = next_.find(thread);
  return next != next_.end() && sequence < next->second;
}

}  // namespace karst::collect
