#include "runtime/core/raw_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "runtime/core/memory.h"
#include "runtime/core/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

struct Table {
  std::uint32_t entry[256];
  constexpr Table() : entry{} {
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82F63B78U : 0U);
      entry[i] = c;
    }
  }
};
constexpr Table kTable;

bool has_crc_instruction() {
  static std::uint32_t s_known;  // 1: no, 2: yes
  if (load(s_known) == 0) {
    std::uint32_t a = 1;
    std::uint32_t b = 0;
    std::uint32_t c = 0;
    std::uint32_t d = 0;
    asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    store(s_known, (c >> 20 & 1) + 1);
  }
  return load(s_known) == 2;
}

std::uint64_t limit_on_files() {
  rlimit limit{};
  if (sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, sys::word(&limit)) != 0) return ~std::uint64_t{0};
  return limit.rlim_cur;
}

}  // namespace

std::uint32_t checksum(const void* data, std::size_t size, std::uint32_t crc) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t c = ~crc & 0xffffffffU;
  if (!has_crc_instruction()) {
    auto c32 = static_cast<std::uint32_t>(c);
    for (; size != 0; --size) c32 = kTable.entry[(c32 ^ *p++) & 0xff] ^ (c32 >> 8);
    return ~c32;
  }
  for (; size >= 8; size -= 8, p += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, p, 8);
    asm("crc32q %1, %0" : "+r"(c) : "r"(word));
  }
  auto c32 = static_cast<std::uint32_t>(c);
  for (; size != 0; --size, ++p) asm("crc32b %1, %0" : "+r"(c32) : "r"(*p));
  return ~c32;
}

RawFile::RawFile(const char* path, char* space) : path_(path), temporary_(space), most_(limit_on_files()) {
  constexpr std::size_t kEnding = 20;  // ".", 16 digits, NUL
  const std::size_t size = length(path);
  if (size == 0 || size + kEnding > kNameSpace) {
    error_ = size == 0 ? -ENOENT : -ENAMETOOLONG;
    return;
  }
  copy(temporary_, path, size);
  temporary_[size] = '.';
  for (int tries = 0; tries < 100; ++tries) {
    std::uint64_t number = __builtin_ia32_rdtsc() ^ static_cast<std::uint64_t>(sys::gettid()) << 40;
    for (unsigned i = 1; i <= 16; ++i, number >>= 4) temporary_[size + i] = "0123456789abcdef"[number & 15];
    temporary_[size + 17] = '\0';
    const long fd = sys::call(SYS_openat, AT_FDCWD, sys::word(temporary_),
                              O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
      fd_ = static_cast<int>(fd);
      const FileHeader later{};  // filled in by finish()
      put(&later, sizeof later);
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
  sys::call(SYS_unlinkat, AT_FDCWD, sys::word(temporary_), 0);
}

void RawFile::put(const void* data, std::size_t size) {
  if (error_ != 0) return;
  if (size > most_ || written_ > most_ - size) {
    error_ = -EFBIG;
    return;
  }
  written_ += size;
  const char* p = static_cast<const char*>(data);
  while (size != 0) {
    const long n = sys::write(fd_, p, size);
    if (n == -EINTR) continue;
    if (n <= 0) {
      error_ = n == 0 ? -EIO : static_cast<int>(n);
      return;
    }
    p += n;
    size -= static_cast<std::size_t>(n);
  }
}

void RawFile::chunk(ChunkType type, const Piece* pieces, std::uint32_t count) {
  if (error_ != 0) return;
  ChunkHeader header{};
  header.type = static_cast<std::uint32_t>(type);
  header.encoding = static_cast<std::uint32_t>(Encoding::kRaw);
  for (std::uint32_t i = 0; i < count; ++i) {
    header.stored_size += pieces[i].size;
    header.payload_crc = checksum(pieces[i].data, pieces[i].size, header.payload_crc);
  }
  header.raw_size = header.stored_size;
  header.header_crc = checksum(&header, offsetof(ChunkHeader, header_crc));
  put(&header, sizeof header);
  for (std::uint32_t i = 0; i < count; ++i) put(pieces[i].data, pieces[i].size);
  const char padding[8] = {};
  put(padding, (8 - header.stored_size % 8) % 8);
  ++chunks_;
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
    ended_ = true;
  }
  // A link to an existing name fails, where a rename would replace it.
  const long done = only_new ? sys::call(SYS_linkat, AT_FDCWD, sys::word(temporary_), AT_FDCWD, sys::word(path_), 0)
                             : sys::call(SYS_renameat, AT_FDCWD, sys::word(temporary_), AT_FDCWD, sys::word(path_));
  if (done == -EEXIST && only_new) return -EEXIST;
  if (done != 0) return error_ = static_cast<int>(done);
  if (only_new) sys::call(SYS_unlinkat, AT_FDCWD, sys::word(temporary_), 0);
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
