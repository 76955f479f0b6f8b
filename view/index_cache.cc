#include "view/index_cache.h"

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

#include "format/checksum.h"
#include "view/protocol.h"

namespace karst::view {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMagic = 0x0032584449545352ULL;  // "RSTIDX2"
constexpr std::string_view kSuffix = ".index";
constexpr std::uint64_t kAlignment = 64;
constexpr std::size_t kAtOnce = std::size_t{16} << 20U;  // bytes between two looks at `stop`

// file := Header part* meta. Parts are aligned; meta is a list of 64-bit numbers.
struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t identity = 0;  // of the trace's file
  std::uint64_t size = 0;      // of this file
  std::uint64_t meta_offset = 0;
  std::uint64_t meta_count = 0;
  std::uint64_t boot = 0;    // run of the machine in which all checksums were right
  std::int64_t changed = 0;  // the file's time of change since then, ns
  std::uint32_t meta_crc = 0;
  std::uint32_t crc = 0;  // of what is before it
};
static_assert(sizeof(Header) == 64);

struct Part {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t crc = 0;
};

struct Descriptor {
  explicit Descriptor(int number) : fd(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

bool make_private_directory(const fs::path& directory) {
  fs::path made;
  for (const fs::path& part : directory) {
    made /= part;
    if (::mkdir(made.c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES) return false;
  }
  struct stat status {};
  // What lies in a directory that others own is not to be trusted.
  return ::stat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

// FNV-1a over the path, what changes with the file, and what changes with this program, which may read the same events
// otherwise than another version; 0: there is no such file.
std::uint64_t identity_of(const fs::path& trace) {
  std::error_code error;
  const fs::path path = fs::canonical(trace, error);
  struct stat status {};
  if (error || ::stat(path.c_str(), &status) != 0) return 0;
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto mix = [&](const void* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3ULL;
  };
  mix(path.native().data(), path.native().size());
  struct stat program {};
  (void)::stat("/proc/self/exe", &program);
  for (const struct stat* of : {&status, &program}) {
    for (const std::uint64_t value :
         {static_cast<std::uint64_t>(of->st_dev), static_cast<std::uint64_t>(of->st_ino),
          static_cast<std::uint64_t>(of->st_size), static_cast<std::uint64_t>(of->st_mtim.tv_sec),
          static_cast<std::uint64_t>(of->st_mtim.tv_nsec)}) {
      mix(&value, sizeof value);
    }
  }
  return hash | 1;
}

// Tells this run of the machine from others; 0: not known.
std::uint64_t boot_now() {
  char text[64];
  const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t size = file.fd < 0 ? -1 : ::read(file.fd, text, sizeof text);
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (ssize_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3ULL;
  return size > 0 ? hash | 1 : 0;
}

std::int64_t ns_of(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// Writes the header, which says that all is sound by now.
bool stamp(int fd, Header header) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  header.boot = boot_now();
  header.changed = ns_of(now);
  header.crc = format::crc32c(&header, offsetof(Header, crc));
  const timespec times[] = {now, now};  // whoever writes to it sets another one
  return ::pwrite(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) && ::futimens(fd, times) == 0;
}

bool is_stamped(const Header& header, const struct stat& status) {
  return header.boot != 0 && header.boot == boot_now() && header.changed == ns_of(status.st_mtim);
}

// Reads an index's header; false: it is none of this trace's.
bool read_header(int fd, std::uint64_t identity, Header& header, struct stat& status) {
  return fd >= 0 && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         ::pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) && header.magic == kMagic &&
         header.crc == format::crc32c(&header, offsetof(Header, crc)) &&
         header.size == static_cast<std::uint64_t>(status.st_size) && header.identity == identity;
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

IndexCache IndexCache::of_user() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/') {
    return IndexCache(fs::path(xdg) / "karst" / "view");
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return IndexCache(fs::path(home) / ".cache" / "karst" / "view");
  }
  return IndexCache({});
}

fs::path IndexCache::file_of(const fs::path& trace) const {
  std::uint64_t identity = directory_.empty() ? 0 : identity_of(trace);
  if (identity == 0) return {};
  std::string name;
  for (int i = 0; i < 16; ++i, identity >>= 4U) name += "0123456789abcdef"[identity & 15U];
  return directory_ / name.append(kSuffix);
}

bool IndexCache::save(const fs::path& trace, const TraceIndex& index, const std::atomic<bool>& stop) const {
  const fs::path path = file_of(trace);
  if (path.empty() || index.from_cache() || index.calls() < few_calls_ || !index.trace().problems().empty() ||
      !make_private_directory(directory_))
    return false;
  std::uint64_t size = 0;
  for (const ThreadIndex& thread : index.threads_) {
    size += thread.calls.size() * 27 + thread.lanes.all_rows().size_bytes() + thread.lanes.all_nodes().size_bytes();
  }
  struct statvfs disk {};
  if (size > limit_ || ::statvfs(directory_.c_str(), &disk) != 0 ||
      static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize < size * 4) {
    return false;
  }
  std::string temporary = path.string() + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (file.fd < 0) return false;
  const bool written = [&] {
    Writer writer(file.fd, stop);
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
    }
    meta.push_back(index.counts_.size());
    for (const auto& counts : index.counts_) {
      meta.push_back(counts.size());
      meta.insert(meta.end(), counts.begin(), counts.end());
    }
    std::vector<std::uint64_t> of_meta;  // where it lies, as of every part
    if (!writer.part(std::span<const std::uint64_t>(meta), of_meta)) return false;
    header.identity = identity_of(trace);
    header.size = writer.offset();
    header.meta_offset = of_meta[0];
    header.meta_count = meta.size();
    header.meta_crc = static_cast<std::uint32_t>(of_meta[2]);
    return stamp(file.fd, header);
  }();
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return false;
  }
  drop_oldest();
  return true;
}

bool IndexCache::stamped(const fs::path& trace) const {
  const fs::path path = file_of(trace);
  if (path.empty()) return false;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  Header header;
  return read_header(file.fd, identity_of(trace), header, status) && is_stamped(header, status);
}

bool IndexCache::load(const fs::path& trace, TraceIndex& index) const {
  const fs::path path = file_of(trace);
  if (path.empty()) return false;
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  Header header;
  if (!read_header(file.fd, identity_of(trace), header, status)) return false;
  const std::uint64_t size = header.size;
  if (header.meta_offset > size || header.meta_offset % 8 != 0 || header.meta_count > (size - header.meta_offset) / 8)
    return false;
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
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
  }
  if (meta.count() != index.trace().processes().size()) return false;
  index.counts_.resize(index.trace().processes().size());
  for (auto& counts : index.counts_) {
    counts.resize(meta.count());
    for (std::uint64_t& count : counts) count = meta.next();
  }
  if (!meta.good()) return false;

  if (is_stamped(header, status)) {
    const timespec used[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};  // drop_oldest() looks at it
    (void)::futimens(file.fd, used);
  } else {
    std::atomic<bool> sound = true;
    run_parallel(parts.size(), [&](std::size_t i) {
      if (sound && format::crc32c(bytes + parts[i].offset, parts[i].size) != parts[i].crc) sound = false;
    });
    if (!sound) return false;
    (void)stamp(file.fd, header);
  }
  index.mapping_ = mapping;
  return true;
}

void IndexCache::drop_oldest() const {
  struct Entry {
    std::int64_t used;
    std::uint64_t size;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (auto it = fs::directory_iterator(directory_, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code gone;  // another process may drop the same files
    if (name.find(kSuffix) == std::string::npos || !it->is_regular_file(gone)) continue;
    struct stat status {};
    if (::stat(it->path().c_str(), &status) != 0) continue;
    const Entry entry{ns_of(status.st_atim), static_cast<std::uint64_t>(status.st_size), it->path()};
    // A temporary file this old belongs to a writer that died.
    if (!name.ends_with(kSuffix)) {
      if (now - it->last_write_time(gone) > std::chrono::hours(1) && !gone) fs::remove(entry.path, gone);
      continue;
    }
    total += entry.size;
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    if (fs::remove(entry.path, error)) total -= entry.size;
  }
}

}  // namespace karst::view
