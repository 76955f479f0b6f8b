// SPDX-License-Identifier: MIT
// The bytes of an arena: a memfd or a file that its process, and perhaps an enemy, changes while it is read; or memory.
//
// A descriptor is read by system calls: what its owner does to it (holes, pages that cannot be had, file systems that
// raise SIGBUS) is then a failed read, and parts that were never used stay so, where touching them would make them
// real. A guarded mapping is made where words are to be written, where descriptors are short, and for many blocks: a
// system call for each takes three times as long (750 ns to 270).
#pragma once
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "reader/bus_errors.h"

namespace karst::collect {

/// `count` things of `each` bytes from `offset` on lie in `size` bytes, in their right places for 8-byte words.
inline bool fits(std::uint64_t offset, std::uint64_t count, std::uint64_t each, std::uint64_t size) {
  return offset <= size && offset % 8 == 0 && count <= (size - offset) / each;
}

/// A regular file on one of the file systems that libkarst takes for file=PATH. Asks no server (FUSE, NFS), which could
/// keep us waiting: O_PATH will do.
bool may_be_arena_file(int descriptor);

/// Movable; one thread at a time.
class ArenaBytes {
 public:
  /// The memfd, or the file (file=PATH), behind `descriptor`, which is only borrowed. Error: it is neither, a memfd
  /// that could shrink, or a file on a file system that does not belong to this machine's kernel alone.
  static Result<ArenaBytes> of_descriptor(int descriptor);
  /// Memory that outlives it, and is not written to.
  static ArenaBytes of_memory(std::span<const std::byte> bytes);

  std::uint64_t size() const { return size_; }
  /// Of the memfd or file; 0 for memory.
  std::uint64_t inode() const { return inode_; }
  /// Whose it is.
  uid_t uid() const { return uid_; }
  gid_t gid() const { return gid_; }
  /// It is a file, which outlives its process and the machine's restart.
  bool is_file() const { return is_file_; }

  /// Copies that part. False when it is not there or cannot be had; then `to` is zero.
  bool read(std::uint64_t offset, void* to, std::size_t size) const;
  /// The same, by the mapping if there is one: for what next_data() names.
  bool read_data(std::uint64_t offset, void* to, std::size_t size) const;
  /// Much is going to be read by read_data().
  void expect_much() const;
  /// The T there; zero when it cannot be had.
  template <typename T>
  T get(std::uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    read(offset, &value, sizeof value);
    return value;
  }

  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  /// The first part from `from` to `to` that was ever written to, as far as the system knows.
  std::optional<Range> next_data(std::uint64_t from, std::uint64_t to) const;

  /// use(index, T) for those of the `count` things from `offset` on that may not be zero, in order.
  template <typename T, typename Use>
  void for_each(std::uint64_t offset, std::uint64_t count, Use&& use) const {
    constexpr std::uint64_t kAtOnce = (std::uint64_t{64} << 10) / sizeof(T);
    std::vector<T> buffer;
    for (std::uint64_t i = 0; i < count;) {
      const auto data = next_data(offset + i * sizeof(T), offset + count * sizeof(T));
      if (!data) return;
      i = (data->begin - offset) / sizeof(T);
      const std::uint64_t end = (data->end - offset + sizeof(T) - 1) / sizeof(T);
      while (i < end) {
        buffer.resize(std::min(kAtOnce, end - i));
        read(offset + i * sizeof(T), buffer.data(), buffer.size() * sizeof(T));
        for (const T& value : buffer) use(i++, value);
      }
    }
  }

  /// All of it to be written to, in turn with its process: for atomic operations. Made at the first call. Null: it
  /// cannot be had.
  std::byte* writable() const;
  /// Whether some memory of it could not be had since then: what was written there is lost.
  bool met_error() const { return mapped_ && mapped_->met_error(); }

 private:
  /// All of it, shared with its process and guarded.
  class Mapped {
   public:
    Mapped(std::byte* base, std::size_t size);
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    ~Mapped();
    std::byte* base() const { return base_; }
    bool met_error() const { return guard_->met_error(); }

   private:
    std::byte* base_;
    std::size_t size_;
    std::optional<reader::BusErrorGuard> guard_;
  };

  ArenaBytes() = default;
  bool map(int descriptor) const;
  const std::byte* in_memory() const { return mapped_ ? mapped_->base() : memory_; }
  bool copy(std::uint64_t offset, void* to, std::size_t size) const;

  Descriptor descriptor_;
  const std::byte* memory_ = nullptr;  ///< of_memory()
  mutable std::unique_ptr<Mapped> mapped_;
  std::uint64_t size_ = 0;
  std::uint64_t inode_ = 0;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  bool is_file_ = false;
};

}  // namespace karst::collect
