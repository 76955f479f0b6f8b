// SPDX-License-Identifier: MIT
// Writes chunks with their checksums to a temporary file that gets its name in the end, so a reader never finds half of
// one. Limits on the size of files are asked for first, as passing one raises a signal.
#include "runtime/snapshots/raw_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "arch/cpu.h"
#include "format/session.h"
#include "runtime/snapshots/checksum.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

std::uint64_t limit_on_files() {
  rlimit limit{};
  if (sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, sys::word(&limit)) != 0) return ~std::uint64_t{0};
  return limit.rlim_cur;
}

}  // namespace

RawFile::RawFile(const char* path, char* space)
    : path_(path), directory_(path), temporary_(space), most_(limit_on_files()) {
  constexpr std::size_t kEnding = 20;  // ".", 16 digits, NUL
  const char* const name = HeldDirectory::name_in(path);
  const std::size_t size = length(name);
  if (size == 0 || size + kEnding > kNameSpace || directory_.number() < 0) {
    error_ = size == 0 ? -ENOENT : directory_.number() < 0 ? directory_.number() : -ENAMETOOLONG;
    return;
  }
  copy(temporary_, name, size);
  temporary_[size] = '.';
  for (int tries = 0; tries < 100; ++tries) {
    std::uint64_t number = arch::time_stamp() ^ static_cast<std::uint64_t>(sys::gettid()) << 40;
    for (unsigned i = 1; i <= 16; ++i, number >>= 4) temporary_[size + i] = "0123456789abcdef"[number & 15];
    temporary_[size + 17] = '\0';
    const long fd = sys::call(SYS_openat, directory_.number(), sys::word(temporary_),
                              O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
      fd_ = static_cast<int>(fd);
      FileHeader later{};  // filled in by finish()
      iovec part{&later, sizeof later};
      put(&part, 1);
      return;
    }
    error_ = static_cast<int>(fd);
    if (fd != -EEXIST && fd != -EINTR) return;
    error_ = 0;
  }
  error_ = -EEXIST;
}

RawFile::~RawFile() {
  if (fd_ < 0) return;
  sys::close(fd_);
  sys::call(SYS_unlinkat, directory_.number(), sys::word(temporary_), 0);
}

void RawFile::put(iovec* parts, std::uint32_t count) {
  if (error_ != 0) return;
  std::uint64_t size = 0;
  for (std::uint32_t i = 0; i < count; ++i) size += parts[i].iov_len;
  if (size > most_ || written_ > most_ - size) {
    error_ = -EFBIG;
    return;
  }
  written_ += size;
  while (count != 0) {
    const long n = sys::call(SYS_writev, fd_, sys::word(parts), count);
    if (n == -EINTR) continue;
    if (n <= 0) {
      error_ = n == 0 ? -EIO : static_cast<int>(n);
      return;
    }
    auto done = static_cast<std::size_t>(n);
    for (; count != 0 && done >= parts->iov_len; ++parts, --count) done -= parts->iov_len;
    if (count == 0) return;
    parts->iov_base = static_cast<char*>(parts->iov_base) + done;
    parts->iov_len -= done;
  }
}

void RawFile::expect(std::uint64_t size) {
  // Beyond the limit on files this, too, would raise SIGXFSZ. Where there is no room the writes will tell.
  if (error_ != 0 || size > most_ || written_ > most_ - size) return;
  if (sys::call(SYS_fallocate, fd_, 0, 0, static_cast<long>(written_ + size)) == 0) reserved_ = written_ + size;
}

void RawFile::chunk(ChunkType type, const Piece* pieces, std::uint32_t count) {
  std::uint32_t crc = 0;
  for (std::uint32_t i = 0; i < count; ++i) crc = checksum(pieces[i].data, pieces[i].size, crc);
  chunk(type, pieces, count, crc);
}

void RawFile::chunk(ChunkType type, const Piece* pieces, std::uint32_t count, std::uint32_t crc) {
  if (error_ != 0) return;
  constexpr std::uint32_t kMostPieces = 3;
  iovec parts[kMostPieces + 2];
  ChunkHeader header{};
  parts[0] = {&header, sizeof header};
  header.type = static_cast<std::uint32_t>(type);
  header.encoding = static_cast<std::uint32_t>(Encoding::kRaw);
  header.payload_crc = crc;
  for (std::uint32_t i = 0; i < count && i < kMostPieces; ++i) {
    header.stored_size += pieces[i].size;
    parts[i + 1] = {const_cast<void*>(pieces[i].data), pieces[i].size};
  }
  header.raw_size = header.stored_size;
  header.header_crc = checksum(&header, offsetof(ChunkHeader, header_crc));
  char padding[8] = {};
  parts[count + 1] = {padding, (8 - header.stored_size % 8) % 8};
  put(parts, count + 2);
  ++chunks_;
}

bool RawFile::copy_chunks(int fd, char* space, std::size_t size) {
  const long seals = sys::call(SYS_fcntl, fd, F_GET_SEALS);  // fails unless it is memory
  constexpr long kNeeded = F_SEAL_SHRINK | F_SEAL_WRITE;
  const long end = sys::call(SYS_lseek, fd, 0, SEEK_END);
  if (seals < 0 || (seals & kNeeded) != kNeeded || end < 0 || static_cast<std::uint64_t>(end) > kMostAnswer)
    return false;
  const auto all = static_cast<std::uint64_t>(end);
  std::uint64_t at = sizeof(FileHeader);
  for (ChunkHeader header{}; error_ == 0 && at <= all && all - at >= sizeof header;) {
    if (sys::call(SYS_pread64, fd, sys::word(&header), sizeof header, static_cast<long>(at)) !=
            static_cast<long>(sizeof header) ||
        header.header_crc != checksum(&header, offsetof(ChunkHeader, header_crc)))
      return false;
    const auto type = static_cast<ChunkType>(header.type);
    if (type == ChunkType::kEnd) return true;
    // Its payload is checked by who reads the file, as all payloads are.
    if (header.stored_size > all - at - sizeof header) return false;
    const std::uint64_t whole = sizeof header + align_up(header.stored_size, 8);
    const bool wanted = type == ChunkType::kStateSource || type == ChunkType::kTasks ||
                        type == ChunkType::kStateEvents || type == ChunkType::kMoments;
    if (whole > all - at) return false;
    for (std::uint64_t done = 0; wanted && error_ == 0 && done < whole;) {
      const std::uint64_t part = whole - done < size ? whole - done : size;
      const long n =
          sys::call(SYS_pread64, fd, sys::word(space), static_cast<long>(part), static_cast<long>(at + done));
      if (n <= 0) {
        error_ = -EIO;  // half a chunk is in the file
        return false;
      }
      iovec piece{space, static_cast<std::size_t>(n)};
      put(&piece, 1);
      done += static_cast<std::uint64_t>(n);
    }
    if (wanted) ++chunks_;
    at += whole;
  }
  return false;
}

int RawFile::finish(std::uint64_t events, bool only_new) {
  if (error_ != 0) return error_;
  if (!ended_) {
    const EndRecord end{chunks_, events};
    const Piece piece{&end, sizeof end};
    chunk(ChunkType::kEnd, &piece, 1);
    FileHeader header{};
    __builtin_memcpy(header.magic, kFileMagic, sizeof header.magic);
    header.major = kMajorVersion;
    header.minor = kMinorVersion;
    header.header_size = sizeof header;
    header.crc = checksum(&header, offsetof(FileHeader, crc));
    if (error_ != 0) return error_;
    const long n = sys::call(SYS_pwrite64, fd_, sys::word(&header), sizeof header, 0);
    if (n != static_cast<long>(sizeof header)) return error_ = n < 0 ? static_cast<int>(n) : -EIO;
    if (reserved_ > written_) {
      const long cut = sys::call(SYS_ftruncate, fd_, static_cast<long>(written_));
      if (cut != 0) return error_ = static_cast<int>(cut);
    }
    if (safe_) {
      const long kept = sys::call(SYS_fsync, fd_);
      if (kept != 0) return error_ = static_cast<int>(kept);
    }
    ended_ = true;
  }
  // A link to an existing name fails, where a rename would replace it.
  const int in = directory_.number();
  const long name = sys::word(HeldDirectory::name_in(path_));
  const long done = only_new ? sys::call(SYS_linkat, in, sys::word(temporary_), in, name, 0)
                             : sys::call(SYS_renameat, in, sys::word(temporary_), in, name);
  if (done == -EEXIST && only_new) return -EEXIST;
  if (done != 0) return error_ = static_cast<int>(done);
  if (only_new) sys::call(SYS_unlinkat, directory_.number(), sys::word(temporary_), 0);
  sys::close(fd_);
  fd_ = -1;
  return 0;
}

Pages::Pages(std::size_t size) : size_(size) {
  const long got = sys::mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (!sys::failed(got)) data_ = reinterpret_cast<char*>(got);
}

Pages::~Pages() {
  if (data_ != nullptr) sys::munmap(data_, size_);
}

}  // namespace karst::runtime
