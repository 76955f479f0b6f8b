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
#include <string>
#include <utility>

#include "format/options.h"

namespace karst::collect {

namespace {

// Blocks, kept blocks and tables: no arena of libkarst's is larger.
constexpr std::uint64_t kMostBytes = 2 * format::kMostMemory + (std::uint64_t{1} << 30);
// A run keeps so many descriptors for the processes that report themselves.
constexpr rlim_t kSparedDescriptors = 32;

/// A copy of the descriptor; -1 where descriptors are short.
int copy_of(int descriptor) {
  rlimit limit{};
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  if (copy < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
      static_cast<rlim_t>(copy) + kSparedDescriptors <= limit.rlim_cur)
    return copy;
  close(copy);
  return -1;
}

}  // namespace

Result<ArenaBytes> ArenaBytes::of_memfd(int descriptor) {
  // The seals first: what they forbid cannot happen between here and the look at the size.
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return Error{"the process's arena is not a sealed memfd; it was not made by libkarst"};
  struct stat status {};
  struct statfs system {};
  if (fstat(descriptor, &status) != 0 || fstatfs(descriptor, &system) != 0)
    return Error{std::string("the process's arena cannot be examined: ") + std::strerror(errno)};
  if (system.f_type != TMPFS_MAGIC)
    return Error{"the process's arena is not made of usual memory (huge pages?); it was not made by libkarst"};
  ArenaBytes bytes;
  bytes.size_ = static_cast<std::uint64_t>(status.st_size);
  bytes.inode_ = status.st_ino;
  bytes.uid_ = status.st_uid;
  bytes.gid_ = status.st_gid;
  if (bytes.size_ > kMostBytes)
    return Error{"the process's arena has " + std::to_string(bytes.size_) +
                 " bytes; no arena of libkarst's is so large"};
  bytes.descriptor_ = descriptor;
  const bool readable = bytes.size_ == 0 || bytes.read(0, &status, 1);
  bytes.descriptor_ = copy_of(descriptor);
  if (bytes.descriptor_ >= 0 && readable) return bytes;
  const int before = std::exchange(bytes.descriptor_, descriptor);
  const bool mapped = bytes.map();
  bytes.descriptor_ = before;
  if (readable && mapped) return bytes;
  return Error{std::string("the process's arena cannot be read: ") + std::strerror(errno)};
}

ArenaBytes ArenaBytes::of_memory(std::span<const std::byte> bytes) {
  ArenaBytes made;
  // Without a guard it is never written to.
  made.base_ = const_cast<std::byte*>(bytes.data());
  made.size_ = bytes.size();
  return made;
}

ArenaBytes::ArenaBytes(ArenaBytes&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      base_(std::exchange(other.base_, nullptr)),
      guard_(std::move(other.guard_)),
      size_(other.size_),
      inode_(other.inode_),
      uid_(other.uid_),
      gid_(other.gid_) {}

ArenaBytes& ArenaBytes::operator=(ArenaBytes&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(base_, other.base_);
  std::swap(guard_, other.guard_);
  std::swap(size_, other.size_);
  std::swap(inode_, other.inode_);
  std::swap(uid_, other.uid_);
  std::swap(gid_, other.gid_);
  return *this;
}

ArenaBytes::~ArenaBytes() {
  if (guard_) {
    guard_.reset();
    munmap(base_, size_);
  }
  if (descriptor_ >= 0) close(descriptor_);
}

bool ArenaBytes::read(std::uint64_t offset, void* to, std::size_t size) const {
  if (size == 0) return offset <= size_;  // `to` may be null then
  bool whole = offset <= size_ && size <= size_ - offset;
  if (whole && descriptor_ < 0) {
    std::memcpy(to, base_ + offset, size);
    return true;
  }
  for (std::size_t done = 0; whole && done < size;) {
    const ssize_t n = pread(descriptor_, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    whole = n > 0;
    done += whole ? static_cast<std::size_t>(n) : 0;
  }
  if (!whole) std::memset(to, 0, size);
  return whole;
}

bool ArenaBytes::read_data(std::uint64_t offset, void* to, std::size_t size) const {
  if (base_ == nullptr || offset > size_ || size > size_ - offset) return read(offset, to, size);
  std::memcpy(to, base_ + offset, size);
  return true;
}

void ArenaBytes::expect_much() const {
  if (base_ == nullptr && descriptor_ >= 0) map();
}

std::optional<ArenaBytes::Range> ArenaBytes::next_data(std::uint64_t from, std::uint64_t to) const {
  to = std::min(to, size_);
  while (from < to) {
    if (descriptor_ < 0) return Range{from, to};
    // The position that these set is nobody's: all others name theirs.
    const off_t found = lseek(descriptor_, static_cast<off_t>(from), SEEK_DATA);
    if (found < 0) return errno == ENXIO ? std::nullopt : std::optional(Range{from, to});
    const auto begin = static_cast<std::uint64_t>(found);
    if (begin >= to) return std::nullopt;
    const off_t end = lseek(descriptor_, found, SEEK_HOLE);
    if (end > found) return Range{begin, std::min(to, static_cast<std::uint64_t>(end))};
    from = begin + 1;  // it became a hole between the two
  }
  return std::nullopt;
}

bool ArenaBytes::map() const {
  if (size_ == 0) return false;
  void* base = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (base == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(base);
  guard_ = std::make_unique<reader::BusErrorGuard>(base, size_);
  return true;
}

std::byte* ArenaBytes::writable() const {
  expect_much();
  return guard_ ? base_ : nullptr;
}

}  // namespace karst::collect
