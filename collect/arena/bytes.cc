// SPDX-License-Identifier: MIT
#include "collect/arena/bytes.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "format/options.h"

namespace karst::collect {

namespace {

// Blocks, kept blocks and tables: no arena of libkarst's is larger.
constexpr std::uint64_t kMostBytes = 2 * format::kMostMemory + (std::uint64_t{1} << 30);
// A run keeps so many descriptors for the processes that report themselves.
constexpr rlim_t kSparedDescriptors = 32;

/// A copy of the descriptor; none where descriptors are short.
Descriptor copy_of(int descriptor) {
  rlimit limit{};
  Descriptor copy(fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  const bool is_spare = !copy || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
                        static_cast<rlim_t>(copy.get()) + kSparedDescriptors <= limit.rlim_cur;
  return is_spare ? std::move(copy) : Descriptor();
}

bool read_whole(int descriptor, std::uint64_t offset, void* to, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = pread(descriptor, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

// The kernel knows the device by itself, and the list of mounts what is on it.
bool may_be_arena_file(int descriptor) {
  struct statx file {};
  if (statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &file) != 0 || !S_ISREG(file.stx_mode))
    return false;
  const std::string device = " " + std::to_string(file.stx_dev_major) + ":" + std::to_string(file.stx_dev_minor) + " ";
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(device) == std::string::npos) continue;
    const auto type = line.find(" - ");
    if (type == std::string::npos) continue;
    for (const std::string_view known : {"ext4 ", "ext3 ", "ext2 ", "xfs ", "tmpfs "})
      if (std::string_view(line).substr(type + 3).starts_with(known)) return true;
  }
  return false;
}

Result<ArenaBytes> ArenaBytes::of_descriptor(int descriptor) {
  // The seals first: what they forbid cannot happen between here and the look at the size.
  const int seals = fcntl(descriptor, F_GET_SEALS);
  const bool is_memfd = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (!is_memfd && !may_be_arena_file(descriptor))
    return Error{
        "the process's arena is neither a sealed memfd nor a file on ext4, xfs or tmpfs; it was not made by libkarst"};
  struct stat status {};
  struct statfs system {};
  if (fstat(descriptor, &status) != 0 || fstatfs(descriptor, &system) != 0)
    return Error{std::string("the process's arena cannot be examined: ") + std::strerror(errno)};
  if (is_memfd && system.f_type != TMPFS_MAGIC)
    return Error{"the process's arena is not made of usual memory (huge pages?); it was not made by libkarst"};
  ArenaBytes bytes;
  bytes.size_ = static_cast<std::uint64_t>(status.st_size);
  bytes.inode_ = status.st_ino;
  bytes.uid_ = status.st_uid;
  bytes.gid_ = status.st_gid;
  bytes.is_file_ = !is_memfd;
  if (bytes.size_ > kMostBytes)
    return Error{"the process's arena has " + std::to_string(bytes.size_) +
                 " bytes; no arena of libkarst's is so large"};
  const bool readable = bytes.size_ == 0 || read_whole(descriptor, 0, &status, 1);
  bytes.descriptor_ = copy_of(descriptor);
  if (readable && (bytes.descriptor_ || bytes.map(descriptor))) return bytes;
  return Error{std::string("the process's arena cannot be read: ") + std::strerror(errno)};
}

ArenaBytes ArenaBytes::of_memory(std::span<const std::byte> bytes) {
  ArenaBytes made;
  made.memory_ = bytes.data();
  made.size_ = bytes.size();
  return made;
}

ArenaBytes::Mapped::Mapped(std::byte* base, std::size_t size)
    : base_(base), size_(size), guard_(std::in_place, base, size) {}

ArenaBytes::Mapped::~Mapped() {
  guard_.reset();
  munmap(base_, size_);
}

bool ArenaBytes::read(std::uint64_t offset, void* to, std::size_t size) const {
  if (size == 0) return offset <= size_;  // `to` may be null then
  const bool inside = offset <= size_ && size <= size_ - offset;
  if (inside && !descriptor_) return copy(offset, to, size);
  const bool whole = inside && read_whole(descriptor_.get(), offset, to, size);
  if (!whole) std::memset(to, 0, size);
  return whole;
}

bool ArenaBytes::read_data(std::uint64_t offset, void* to, std::size_t size) const {
  if (in_memory() == nullptr || offset > size_ || size > size_ - offset) return read(offset, to, size);
  return copy(offset, to, size);
}

bool ArenaBytes::copy(std::uint64_t offset, void* to, std::size_t size) const {
  std::memcpy(to, in_memory() + offset, size);
  return true;
}

void ArenaBytes::expect_much() const {
  if (in_memory() == nullptr && descriptor_) map(descriptor_.get());
}

std::optional<ArenaBytes::Range> ArenaBytes::next_data(std::uint64_t from, std::uint64_t to) const {
  to = std::min(to, size_);
  while (from < to) {
    if (!descriptor_) return Range{from, to};
    // The position that these set is nobody's: all others name theirs.
    const off_t found = lseek(descriptor_.get(), static_cast<off_t>(from), SEEK_DATA);
    if (found < 0) return errno == ENXIO ? std::nullopt : std::optional(Range{from, to});
    const auto begin = static_cast<std::uint64_t>(found);
    if (begin >= to) return std::nullopt;
    const off_t end = lseek(descriptor_.get(), found, SEEK_HOLE);
    if (end > found) return Range{begin, std::min(to, static_cast<std::uint64_t>(end))};
    from = begin + 1;  // it became a hole between the two
  }
  return std::nullopt;
}

bool ArenaBytes::map(int descriptor) const {
  if (size_ == 0) return false;
  void* base = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (base == MAP_FAILED) return false;
  mapped_ = std::make_unique<Mapped>(static_cast<std::byte*>(base), size_);
  return true;
}

std::byte* ArenaBytes::writable() const {
  expect_much();
  return mapped_ ? mapped_->base() : nullptr;
}

}  // namespace karst::collect
