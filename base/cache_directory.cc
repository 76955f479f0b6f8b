#include "base/cache_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/hex.h"

namespace karst {
namespace {

namespace fs = std::filesystem;

/// A temporary file this old belongs to a writer that died.
constexpr auto kAbandoned = std::chrono::hours(1);
constexpr std::size_t kLongestKey = 64;

/// Whose the path is, or what exists of the way to it. root made what the system is made of.
bool is_users(fs::path path) {
  struct stat status {};
  while (::lstat(path.c_str(), &status) != 0) {
    if (!path.has_relative_path()) return false;
    path = path.parent_path();
  }
  const auto is_trusted = [&status] { return status.st_uid == ::geteuid() || status.st_uid == 0; };
  return is_trusted() && ::stat(path.c_str(), &status) == 0 && is_trusted();
}

std::int64_t ns_of(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

}  // namespace

bool write_whole(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

fs::path CacheDirectory::of_user(std::string_view below) {
  fs::path base;
  fs::path found;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/') {
    base = xdg;
    found = base / "karst";
  } else if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    base = home;
    found = base / ".cache" / "karst";
  }
  if (found.empty()) return found;
  if (!below.empty()) found /= below;
  // root with another's HOME (sudo) would make directories there that are root's, or follow that user's links.
  for (fs::path part = found; part != base; part = part.parent_path())
    if (!is_users(part)) return {};
  return is_users(base) ? found : fs::path();
}

fs::path CacheDirectory::file_of(std::string_view key) const {
  if (!on() || key.empty() || key.size() > kLongestKey) return {};
  return directory_ / hex(key).append(suffix_);
}

Descriptor CacheDirectory::open(const fs::path& file, int flags, struct stat& status) {
  Descriptor opened(file.empty() ? -1 : ::open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid()) {
    return {};
  }
  return opened;
}

void CacheDirectory::used(int fd) {
  const timespec times[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  (void)::futimens(fd, times);
}

bool CacheDirectory::make() const {
  if (!on() || !is_users(directory_)) return false;
  fs::path made;
  for (const fs::path& part : directory_) {
    made /= part;
    // All for the user alone, as the XDG specification asks.
    if (::mkdir(made.c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES) return false;
  }
  struct stat status {};
  // What lies in a directory that others own is not to be trusted.
  return ::stat(directory_.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

bool CacheDirectory::save(const fs::path& file, const std::function<bool(int fd)>& write) const {
  if (file.empty() || !make()) return false;
  std::string temporary = file.string() + ".XXXXXX";
  Descriptor made(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!made) return false;
  // No fsync: after a crash of the machine checksums find a file that is not whole.
  if (!write(made.get()) || !made.close() || ::rename(temporary.c_str(), file.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return false;
  }
  drop_oldest();
  return true;
}

void CacheDirectory::drop_oldest() const {
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
    struct stat status {};
    if (name.find(suffix_) == std::string::npos) continue;
    // Another process may drop the same files.
    if (::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    std::error_code gone;
    if (!name.ends_with(suffix_)) {
      if (now - it->last_write_time(gone) > kAbandoned && !gone) fs::remove(it->path(), gone);
      continue;
    }
    entries.push_back({ns_of(status.st_atim), static_cast<std::uint64_t>(status.st_size), it->path()});
    total += entries.back().size;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    if (fs::remove(entry.path, error)) total -= entry.size;
  }
}

}  // namespace karst
