#include "symbols/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace karst::symbols {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".symbols";
/// A temporary file this old belongs to a writer that died.
constexpr auto kAbandoned = std::chrono::hours(1);

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

bool read_whole(int fd, std::byte* to, std::size_t size) {
  while (size != 0) {
    ssize_t n = ::read(fd, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_whole(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

/// Makes the directory and those above it, all for the user alone (as the XDG specification asks).
bool make_private_directory(const fs::path& directory) {
  fs::path made;
  for (const fs::path& part : directory) {
    made /= part;
    if (::mkdir(made.c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES) return false;
  }
  struct stat status {};
  // Names from a directory that others own are not to be trusted.
  return ::stat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

}  // namespace

Cache Cache::of_user() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/') {
    return Cache(fs::path(xdg) / "karst");
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return Cache(fs::path(home) / ".cache" / "karst");
  }
  return Cache();
}

fs::path Cache::file_of(std::string_view build_id) const {
  if (!on() || build_id.empty() || build_id.size() > 64) return {};
  std::string name;
  for (unsigned char c : build_id) {
    name += "0123456789abcdef"[c >> 4];
    name += "0123456789abcdef"[c & 15];
  }
  return directory_ / name.append(kSuffix);
}

std::optional<SymbolTable> Cache::find(std::string_view build_id) const {
  fs::path path = file_of(build_id);
  if (path.empty()) return std::nullopt;
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (file.fd() < 0 || ::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      static_cast<std::uint64_t>(status.st_size) > limit_) {
    return std::nullopt;
  }
  auto size = static_cast<std::size_t>(status.st_size);
  // One read, not a mapping: the file may be cut while it is in use.
  auto image = std::make_unique_for_overwrite<std::byte[]>(size);
  if (!read_whole(file.fd(), image.get(), size)) return std::nullopt;
  auto table = SymbolTable::from_image(std::move(image), size);
  if (!table || table->build_id() != build_id) return std::nullopt;
  (void)::futimens(file.fd(), nullptr);  // used now; drop_oldest() looks at it
  return std::move(*table);
}

bool Cache::save(const SymbolTable& table) const {
  fs::path path = file_of(table.build_id());
  if (path.empty() || !table.has_debug_info() || !table.debug_incomplete().empty() || table.image().size() > limit_) {
    return false;
  }
  if (!make_private_directory(directory_)) return false;
  std::string temporary = path.string() + ".XXXXXX";
  File file(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (file.fd() < 0) return false;
  // No fsync: after a crash of the machine the checksums find a file that is not whole.
  if (!write_whole(file.fd(), table.image()) || !file.close() || ::rename(temporary.c_str(), path.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return false;
  }
  drop_oldest();
  return true;
}

void Cache::drop_oldest() const {
  struct Entry {
    fs::file_time_type used;
    std::uint64_t size;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  auto now = fs::file_time_type::clock::now();
  for (auto it = fs::directory_iterator(directory_, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::string name = it->path().filename().string();
    std::error_code gone;  // another process may drop the same files
    if (name.find(kSuffix) == std::string::npos || !it->is_regular_file(gone)) continue;
    Entry entry{it->last_write_time(gone), 0, it->path()};
    if (!gone) entry.size = it->file_size(gone);
    if (gone) continue;
    if (!name.ends_with(kSuffix)) {
      if (now - entry.used > kAbandoned) fs::remove(entry.path, gone);
      continue;
    }
    total += entry.size;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    if (fs::remove(entry.path, error)) total -= entry.size;
  }
}

Result<SymbolTable> Cache::load(const fs::path& module, std::string_view build_id, const DebugSearch& search) const {
  if (auto table = find(build_id)) return std::move(*table);
  auto table = SymbolTable::load(module, build_id, search);
  if (table) save(*table);
  return table;
}

}  // namespace karst::symbols
