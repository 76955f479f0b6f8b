// SPDX-License-Identifier: MIT
// The container of format/trace.h, written by the process itself: system calls and memory of its own alone, so it
// works in signal handlers and whatever state the program's heap is in. No names: a raw trace, which `karst resolve`
// makes whole.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/trace.h"
#include "runtime/system/held_directory.h"

struct iovec;

namespace karst::runtime {

/// A file that gets its name when it is whole. One thread at a time. Failures are sticky.
class RawFile {
 public:
  static constexpr std::size_t kNameSpace = 4096;
  /// Makes a temporary file (mode 0600) beside `path`. That and `space` (kNameSpace bytes: a signal handler's stack may
  /// be small) must live as long as this.
  RawFile(const char* path, char* space);
  /// Removes what was not finished.
  ~RawFile();
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  /// One chunk of the raw encoding, its payload in up to three pieces that follow each other.
  struct Piece {
    const void* data;
    std::size_t size;
  };
  void chunk(format::ChunkType type, const Piece* pieces, std::uint32_t count);
  /// Some `size` bytes are about to come: has the file system find room for them at once, where it can, which makes
  /// the writes themselves a third faster (ext4). What is not used is given back by finish().
  void expect(std::uint64_t size);
  /// The same where the payload's checksum is known.
  void chunk(format::ChunkType type, const Piece* pieces, std::uint32_t count, std::uint32_t crc);
  /// The chunks of another trace file but its end, as they are, through `space`; only of the types of format::Answer.
  /// `fd` is sealed memory. False when it is not, or is no trace: then what was sound of it is in.
  bool copy_chunks(int fd, char* space, std::size_t size);
  /// The end chunk; `events` are those of all BLKS chunks. Returns 0 with the file under its name, or -errno; with
  /// `only_new`, -EEXIST when there is such a file (and finish() may be called again after rename_to()).
  int finish(std::uint64_t events, bool only_new);
  /// In the same directory.
  void rename_to(const char* path) { path_ = path; }
  /// finish() waits until the file is on the disk before it gets its name: for what is all that remains.
  void keep_safe() { safe_ = true; }
  /// 0, or -errno of the first failure.
  int error() const { return error_; }

 private:
  void put(iovec* parts, std::uint32_t count);

  const char* path_;
  const HeldDirectory directory_;
  char* temporary_;  ///< in it
  int fd_ = -1;
  int error_ = 0;
  bool ended_ = false;
  bool safe_ = false;
  std::uint64_t written_ = 0;
  std::uint64_t reserved_ = 0;  ///< size of the file as far as expect() has made it
  std::uint64_t most_ = 0;      ///< RLIMIT_FSIZE: beyond it a write would raise SIGXFSZ, which ends our host
  std::uint64_t chunks_ = 0;
};

/// Memory from the system; freed with this.
class Pages {
 public:
  explicit Pages(std::size_t size);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  explicit operator bool() const { return data_ != nullptr; }
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Collects the records and texts of one table and writes them as chunks. `space` is for kTableSpace bytes.
inline constexpr std::size_t kTableRecords = std::size_t{512} << 10;
inline constexpr std::size_t kTableText = std::size_t{512} << 10;
inline constexpr std::size_t kTableSpace = kTableRecords + kTableText;

template <typename Record>
class RawTable {
 public:
  RawTable(RawFile& file, format::ChunkType type, char* space) : file_(file), type_(type), space_(space) {}
  ~RawTable() { flush(); }
  RawTable(const RawTable&) = delete;
  RawTable& operator=(const RawTable&) = delete;

  /// Before the texts of a record: room for all of them in the chunk that it will be in.
  void make_room(std::size_t text) {
    if (records_ + sizeof(Record) > kTableRecords || text_ + text > kTableText) flush();
  }
  /// Cut when it is longer than any that was made room for.
  format::StringRef text(const char* from, std::size_t size) {
    if (size > kTableText - text_) size = kTableText - text_;
    const format::StringRef ref{static_cast<std::uint32_t>(text_), static_cast<std::uint32_t>(size)};
    __builtin_memcpy(space_ + kTableRecords + text_, from, size);
    text_ += size;
    return ref;
  }
  void add(const Record& record) {
    __builtin_memcpy(space_ + records_, &record, sizeof record);
    records_ += sizeof record;
  }

 private:
  void flush() {
    if (records_ == 0) return;
    const format::TableHeader header{0, sizeof(Record), static_cast<std::uint32_t>(records_ / sizeof(Record)),
                                     static_cast<std::uint32_t>(text_)};
    const RawFile::Piece pieces[] = {{&header, sizeof header}, {space_, records_}, {space_ + kTableRecords, text_}};
    file_.chunk(type_, pieces, 3);
    records_ = text_ = 0;
  }

  RawFile& file_;
  format::ChunkType type_;
  char* space_;
  std::size_t records_ = 0;
  std::size_t text_ = 0;
};

}  // namespace karst::runtime
