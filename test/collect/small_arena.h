// A small arena that is right, and a memfd to put one into: for tests and for fuzzing.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "format/arena.h"

namespace karst::collect {

using namespace format;

inline constexpr std::uint32_t kArenaBlocks = 8;

/// A small sound arena: one module, two functions, two threads, four blocks with events.
inline std::vector<std::byte> sound_arena() {
  ArenaHeader h{};
  h.magic = kArenaMagic;
  h.version = kArenaVersion;
  h.state = static_cast<std::uint32_t>(ArenaState::kReady);
  h.modules_offset = 4096;
  h.functions_offset = 8192;
  h.threads_offset = 12288;
  h.text_offset = 16384;
  h.blocks_offset = 20480;
  h.size = h.blocks_offset + kArenaBlocks * kBlockSize;
  h.module_capacity = 16;
  h.function_capacity = 64;
  h.thread_capacity = 16;
  h.text_capacity = 4096;
  h.block_capacity = kArenaBlocks;
  h.pid = 4711;
  const ClockPair start = read_clock_pair();
  h.start_ticks = start.ticks;
  h.start_monotonic_raw_ns = start.monotonic_raw_ns;
  h.module_count = 1;
  h.function_count = 2;
  h.thread_count = 2;
  h.blocks_reserved = kArenaBlocks;
  h.executable_offset = 1;
  h.executable_size = 8;
  h.command_line_offset = 9;
  h.command_line_size = 8;
  std::vector<std::byte> bytes(h.size);
  const auto put = [&bytes](std::uint64_t at, const auto& value) { std::memcpy(&bytes[at], &value, sizeof value); };
  put(0, h);
  ArenaModule m{};
  m.path_offset = 1;
  m.path_size = 8;
  m.build_id_size = 20;
  m.first_function = 1;
  m.function_count = 2;
  put(h.modules_offset, m);
  put(h.functions_offset + sizeof(ArenaFunction), ArenaFunction{0x1000, 0, kArenaFunctionOn});
  put(h.functions_offset + 2 * sizeof(ArenaFunction), ArenaFunction{0x2000, 0, kArenaFunctionOn});
  for (std::uint32_t i = 0; i < 2; ++i) {
    ArenaThread t{};
    t.tid = 4711 + i;
    t.state = static_cast<std::uint32_t>(ThreadLife::kLive);
    std::memcpy(t.name, "0123456789abcdef", sizeof t.name);
    put(h.threads_offset + i * sizeof t, t);
  }
  std::memcpy(&bytes[h.text_offset + 1], "/bin/appapp\0arg", 16);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint64_t at = h.blocks_offset + i * kBlockSize;
    BlockHeader b{};
    b.generation = 2;
    b.state = static_cast<std::uint32_t>(i < 2 ? BlockState::kFull : BlockState::kActive);
    b.thread = i % 2;
    b.sequence = i / 2;
    b.ticks = 1000 * i;
    put(at, b);
    for (std::uint32_t e = 0; e < 10; ++e) put(at + kBlockHeaderSize + e * 8, make_event(1000 * i + e, e % 2 != 0, 1));
  }
  return bytes;
}

/// A memfd with these bytes. Sealed as libkarst seals, unless told otherwise.
class Memfd {
 public:
  explicit Memfd(const std::vector<std::byte>& bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW)
      : fd_(memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    made_ = write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
            (seals == 0 || fcntl(fd_, F_ADD_SEALS, seals) == 0);
  }
  ~Memfd() { close(fd_); }
  Memfd(const Memfd&) = delete;
  Memfd& operator=(const Memfd&) = delete;
  int get() const { return fd_; }
  bool made() const { return made_; }

 private:
  int fd_;
  bool made_ = false;
};

}  // namespace karst::collect
