// SPDX-License-Identifier: MIT
#include "engine/index/index_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/cache_directory.h"
#include "engine/protocol.h"
#include "format/checksum.h"
#include "reader/fingerprint.h"
#include "reader/held_times.h"

namespace karst::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMagic = 0x0035584449545352ULL;  // "RSTIDX5"
constexpr std::uint64_t kAlignment = 64;
constexpr std::size_t kAtOnce = std::size_t{16} << 20U;  // bytes between two looks at `stop`

// file := Header part* meta. Parts are aligned; meta is a list of 64-bit numbers.
struct Header {
  std::uint64_t magic = kMagic;
  KnownTrace::Contents contents;  // of the trace
  std::uint64_t size = 0;         // of this file
  std::uint64_t meta_offset = 0;
  std::uint64_t meta_count = 0;
  std::uint64_t boot = 0;    // run of the machine in which all checksums, of the trace too, were right
  std::int64_t changed = 0;  // the file's time of change since then, ns
  std::uint64_t trace = 0;   // the trace's file in which they were, as it was then
  std::uint32_t meta_crc = 0;
  std::uint32_t crc = 0;  // of what is before it
};
static_assert(sizeof(Header) == 88);

struct Part {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t crc = 0;
};

std::uint64_t hash_of(const struct stat& status, bool changes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  const auto mix = [&](auto number) {
    const auto value = static_cast<std::uint64_t>(number);
    for (std::size_t i = 0; i < sizeof value; ++i) hash = (hash ^ (value >> (8 * i) & 0xff)) * 0x100000001b3ULL;
  };
  mix(status.st_dev);
  mix(status.st_ino);
  mix(status.st_size);
  mix(status.st_mtim.tv_sec);
  mix(status.st_mtim.tv_nsec);
  if (changes) {
    mix(status.st_ctim.tv_sec);
    mix(status.st_ctim.tv_nsec);
  }
  return hash;
}

// Tells this run of the machine from others; 0: not known.
std::uint64_t boot_now() {
  char text[64];
  const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t size = file.get() < 0 ? -1 : ::read(file.get(), text, sizeof text);
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (ssize_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3ULL;
  return size > 0 ? hash | 1 : 0;
}

std::int64_t ns_of(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// Writes the header, which says that all is sound by now.
bool stamp(int fd, Header header, std::uint64_t trace) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  header.boot = boot_now();
  header.changed = ns_of(now);
  header.trace = trace;
  header.crc = format::crc32c(&header, offsetof(Header, crc));
  const timespec times[] = {now, now};  // whoever writes to it sets another one
  return ::pwrite(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) && ::futimens(fd, times) == 0;
}

// Whether nobody has written to the index since all checksums were right.
bool is_stamped(const Header& header, const struct stat& status) {
  return header.boot != 0 && header.boot == boot_now() && header.changed == ns_of(status.st_mtim);
}

// Reads an index's header; false: it is none of these contents.
bool read_header(const Descriptor& file, const KnownTrace::Contents& contents, const struct stat& status,
                 Header& header) {
  return file.get() >= 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         ::pread(file.get(), &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
         header.magic == kMagic && header.crc == format::crc32c(&header, offsetof(Header, crc)) &&
         header.size == static_cast<std::uint64_t>(status.st_size) && header.contents == contents;
}

// Whether all that is used as an index into something lies in it. Checksums tell damage; this tells what somebody made
// up.
bool fits(const ThreadIndex& thread, const std::vector<std::uint64_t>& counts) {
  const CallColumns& calls = thread.calls;
  for (std::size_t row = 0; row < calls.size(); ++row) {
    const std::uint32_t id = calls.function[row];
    if (id >= counts.size() || counts[id] == 0) return false;
    if (calls.parent[row] >= row && calls.parent[row] != reader::kNoParent) return false;
  }
  if (!reader::times_in_order(calls.begin, calls.duration, calls.parent)) return false;
  const auto is_row = [&](std::uint32_t row) { return row < calls.size(); };
  return std::all_of(thread.lanes.all_rows().begin(), thread.lanes.all_rows().end(), is_row) &&
         std::all_of(thread.lanes.all_nodes().begin(), thread.lanes.all_nodes().end(),
                     [&](const LaneNode& node) { return is_row(node.row); });
}

class Writer {
 public:
  Writer(int fd, const std::atomic<bool>& stop) : fd_(fd), stop_(stop) {}

  bool write(const void* data, std::size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size != 0) {
      if (stop_) return false;
      const ssize_t n = ::write(fd_, at, std::min(size, kAtOnce));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      size -= static_cast<std::size_t>(n);
      offset_ += static_cast<std::uint64_t>(n);
    }
    return true;
  }
  template <typename T>
  bool part(std::span<const T> values, std::vector<std::uint64_t>& meta) {
    static constexpr char kZeros[kAlignment] = {};
    if (!write(kZeros, (kAlignment - offset_ % kAlignment) % kAlignment)) return false;
    const std::uint64_t at = offset_;
    const std::uint32_t crc = format::crc32c(values.data(), values.size_bytes());
    meta.insert(meta.end(), {at, values.size_bytes(), crc});
    return write(values.data(), values.size_bytes());
  }
  std::uint64_t offset() const { return offset_; }

 private:
  int fd_;
  const std::atomic<bool>& stop_;
  std::uint64_t offset_ = 0;
};

// Reads meta front to back; past its end everything is 0 and good() false.
class Meta {
 public:
  Meta(const std::uint64_t* at, std::uint64_t count) : at_(at), left_(count) {}
  std::uint64_t next() {
    if (left_ == 0) {
      good_ = false;
      return 0;
    }
    --left_;
    return *at_++;
  }
  // A count of things that take at least one number each.
  std::uint64_t count() {
    const std::uint64_t n = next();
    if (n > left_) good_ = false;
    return good_ ? n : 0;
  }
  bool good() const { return good_; }

 private:
  const std::uint64_t* at_;
  std::uint64_t left_;
  bool good_ = true;
};

}  // namespace

IndexCache::IndexCache(fs::path directory, std::uint64_t limit, std::uint64_t few_calls)
    : files_(std::move(directory), ".index", limit), few_calls_(few_calls) {}

IndexCache IndexCache::of_user() { return IndexCache(CacheDirectory::of_user("view")); }

KnownTrace IndexCache::look_at(const fs::path& trace) const {
  KnownTrace known;
  struct stat status {};
  struct stat program {};
  if (!files_.on() || ::stat(trace.c_str(), &status) != 0 || ::stat("/proc/self/exe", &program) != 0) return known;
  const auto fingerprint = reader::fingerprint(trace);
  if (!fingerprint) return known;
  // Another version of this program may read the same events otherwise.
  known.contents = KnownTrace::Contents{(*fingerprint)[0], (*fingerprint)[1], hash_of(program, false)};
  known.file = hash_of(status, true);
  struct stat of_index {};
  Header header;
  const auto file = CacheDirectory::open(file_of(known), O_RDONLY, of_index);
  known.sound = read_header(file, *known.contents, of_index, header) && is_stamped(header, of_index) &&
                header.trace == known.file;
  return known;
}

fs::path IndexCache::file_of(const KnownTrace& known) const {
  if (!known.contents) return {};
  return files_.file_of({reinterpret_cast<const char*>(&*known.contents), sizeof *known.contents});
}

bool IndexCache::save(const TraceIndex& index, const std::atomic<bool>& stop) const {
  const KnownTrace& known = index.known_;
  const fs::path path = file_of(known);
  if (path.empty() || index.from_cache() || index.calls() < few_calls_ || !index.trace().problems().empty() ||
      !files_.make())
    return false;
  std::uint64_t size = 0;
  for (const ThreadIndex& thread : index.threads_) {
    size += thread.calls.size() * 27 + thread.lanes.all_rows().size_bytes() + thread.lanes.all_nodes().size_bytes();
  }
  struct statvfs disk {};
  if (size > files_.limit() || ::statvfs(files_.directory().c_str(), &disk) != 0 ||
      static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize < size * 4) {
    return false;
  }
  return files_.save(path, [&](int fd) {
    Writer writer(fd, stop);
    Header header;
    if (!writer.write(&header, sizeof header)) return false;
    std::vector<std::uint64_t> meta = {index.threads_.size()};
    for (const ThreadIndex& thread : index.threads_) {
      const CallColumns& calls = thread.calls;
      meta.push_back(calls.size());
      if (!writer.part(calls.function, meta) || !writer.part(calls.begin, meta) || !writer.part(calls.duration, meta) ||
          !writer.part(calls.parent, meta) || !writer.part(calls.depth, meta) || !writer.part(calls.marks, meta) ||
          !writer.part(thread.lanes.all_rows(), meta) || !writer.part(thread.lanes.all_nodes(), meta)) {
        return false;
      }
      meta.push_back(thread.lanes.beyond_depth());
      meta.push_back(thread.lanes.depths());
      for (std::uint32_t depth = 0; depth < thread.lanes.depths(); ++depth)
        meta.push_back(thread.lanes.rows(depth).size());
      meta.push_back(thread.gaps.size());
      for (const Gap& gap : thread.gaps)
        meta.insert(meta.end(), {gap.begin, gap.end, gap.blocks, gap.overwritten ? 1U : 0U});
      meta.insert(meta.end(), {thread.gap_count, thread.first_ticks, thread.last_ticks, thread.events,
                               thread.out_of_order, thread.unmatched_exits, thread.missing_exits, thread.unknown_ids});
      meta.insert(meta.end(), thread.notes.begin(), thread.notes.end());
      meta.push_back(thread.noted_costs.size());
      if (!writer.part(thread.noted_costs, meta)) return false;
    }
    meta.push_back(index.counts_.size());
    for (const auto& counts : index.counts_) {
      meta.push_back(counts.size());
      meta.insert(meta.end(), counts.begin(), counts.end());
    }
    std::vector<std::uint64_t> of_meta;  // where it lies, as of every part
    if (!writer.part(std::span<const std::uint64_t>(meta), of_meta)) return false;
    header.contents = *known.contents;
    header.size = writer.offset();
    header.meta_offset = of_meta[0];
    header.meta_count = meta.size();
    header.meta_crc = static_cast<std::uint32_t>(of_meta[2]);
    return stamp(fd, header, known.file);
  });
}

bool IndexCache::load(TraceIndex& index) const {
  const KnownTrace& known = index.known_;
  // Some of a damaged trace's calls are missing; those in here are all there.
  if (!known.contents || !index.trace().problems().empty()) return false;
  struct stat status {};
  Header header;
  const auto file = CacheDirectory::open(file_of(known), O_RDWR, status);
  if (!read_header(file, *known.contents, status, header)) return false;
  const std::uint64_t size = header.size;
  if (header.meta_offset > size || header.meta_offset % 8 != 0 || header.meta_count > (size - header.meta_offset) / 8)
    return false;
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  const std::shared_ptr<const void> mapping(mapped, [size](const void* at) { ::munmap(const_cast<void*>(at), size); });
  const auto* const bytes = static_cast<const std::byte*>(mapped);
  const auto* const numbers = reinterpret_cast<const std::uint64_t*>(bytes + header.meta_offset);
  if (format::crc32c(numbers, header.meta_count * 8) != header.meta_crc) return false;

  Meta meta(numbers, header.meta_count);
  std::vector<Part> parts;  // to be checked
  const auto part = [&]<typename T>(std::span<const T>& values, std::uint64_t count) {
    const Part at{meta.next(), meta.next(), meta.next()};
    if (!meta.good() || at.offset > size || at.size > size - at.offset || at.offset % kAlignment != 0 ||
        at.size / sizeof(T) != count || at.size % sizeof(T) != 0) {
      return false;
    }
    values = {reinterpret_cast<const T*>(bytes + at.offset), count};
    parts.push_back(at);
    return true;
  };
  if (meta.count() != index.threads_.size()) return false;
  for (ThreadIndex& thread : index.threads_) {
    CallColumns& calls = thread.calls;
    const std::uint64_t rows = meta.next();
    std::span<const std::uint32_t> lane_rows;
    std::span<const LaneNode> nodes;
    if (rows > reader::kMaxRows || !part(calls.function, rows) || !part(calls.begin, rows) ||
        !part(calls.duration, rows) || !part(calls.parent, rows) || !part(calls.depth, rows) ||
        !part(calls.marks, rows)) {
      return false;
    }
    // How many there are, lanes check by the sizes of the depths.
    const Part of_rows{meta.next(), meta.next(), meta.next()};
    const Part of_nodes{meta.next(), meta.next(), meta.next()};
    for (const Part& at : {of_rows, of_nodes}) {
      if (!meta.good() || at.offset > size || at.size > size - at.offset || at.offset % kAlignment != 0) return false;
      parts.push_back(at);
    }
    lane_rows = {reinterpret_cast<const std::uint32_t*>(bytes + of_rows.offset), of_rows.size / sizeof(std::uint32_t)};
    nodes = {reinterpret_cast<const LaneNode*>(bytes + of_nodes.offset), of_nodes.size / sizeof(LaneNode)};
    const std::uint64_t beyond = meta.next();
    std::vector<std::uint64_t> counts(meta.count());
    for (std::uint64_t& count : counts) count = meta.next();
    if (!meta.good() || counts.size() > 65536 || !thread.lanes.view(lane_rows, nodes, counts, beyond)) return false;
    thread.gaps.resize(std::min<std::uint64_t>(meta.count(), kMaxGaps));
    for (Gap& gap : thread.gaps) {
      gap.begin = meta.next();
      gap.end = meta.next();
      gap.blocks = meta.next();
      gap.overwritten = meta.next() != 0;
    }
    for (std::uint64_t* field :
         {&thread.gap_count, &thread.first_ticks, &thread.last_ticks, &thread.events, &thread.out_of_order,
          &thread.unmatched_exits, &thread.missing_exits, &thread.unknown_ids}) {
      *field = meta.next();
    }
    for (std::uint64_t& count : thread.notes) count = meta.next();
    if (!part(thread.noted_costs, meta.next())) return false;
  }
  if (meta.count() != index.trace().processes().size()) return false;
  index.counts_.resize(index.trace().processes().size());
  for (auto& counts : index.counts_) {
    counts.resize(meta.count());
    for (std::uint64_t& count : counts) count = meta.next();
  }
  if (!meta.good()) return false;

  if (!is_stamped(header, status)) {
    std::atomic<bool> sound = true;
    run_parallel(parts.size(), [&](std::size_t i) {
      if (sound && format::crc32c(bytes + parts[i].offset, parts[i].size) != parts[i].crc) sound = false;
    });
    run_parallel(index.threads_.size(), [&](std::size_t i) {
      const ThreadIndex& thread = index.threads_[i];
      if (sound && !fits(thread, index.counts_[thread.thread->process])) sound = false;
    });
    if (!sound) return false;
  }
  if (known.sound) {
    CacheDirectory::used(file.get());
  } else {
    (void)stamp(file.get(), header, known.file);
  }
  index.mapping_ = mapping;
  return true;
}

}  // namespace karst::engine
