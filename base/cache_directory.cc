// SPDX-License-Identifier: MIT
#include "base/cache_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "base/hex.h"
#include "base/new_file.h"
#include "base/output_place.h"

namespace karst {
namespace {

namespace fs = std::filesystem;

/// A temporary file this old belongs to a writer that died.
constexpr std::time_t kAbandonedSeconds = 3600;
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

/// `karst` in $`variable`, else in `usual` of the home directory. root with another's HOME (sudo) would make
/// directories there that are root's, or follow that user's links: then it is empty.
fs::path users_karst(const char* variable, const char* usual, std::string_view below) {
  fs::path base;
  fs::path found;
  if (const char* xdg = std::getenv(variable); xdg != nullptr && xdg[0] == '/') {
    base = xdg;
    found = base / "karst";
  } else if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    base = home;
    found = base / usual / "karst";
  }
  if (found.empty()) return found;
  if (!below.empty()) found /= below;
  for (fs::path part = found; part != base; part = part.parent_path())
    if (!is_users(part)) return {};
  return is_users(base) ? found : fs::path();
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

fs::path CacheDirectory::of_user(std::string_view below) { return users_karst("XDG_CACHE_HOME", ".cache", below); }

fs::path CacheDirectory::state_of_user() { return users_karst("XDG_STATE_HOME", ".local/state", {}); }

fs::path CacheDirectory::file_of(std::string_view key) const {
  if (!on() || key.empty() || key.size() > kLongestKey) return {};
  return directory_ / hex(key).append(suffix_);
}

Descriptor CacheDirectory::open(const fs::path& file, int flags, struct stat& status) {
  if (file.empty()) return {};
  const auto place = OutputPlace::find(file.parent_path());
  if (!place || place->there() != OutputPlace::There::kDirectory) return {};
  Descriptor opened(
      ::openat(place->directory().get(), file.filename().c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
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

/// The directory; none where it, or a way to it, is not to be trusted.
Descriptor CacheDirectory::hold(bool make) const {
  if (!on() || !is_users(directory_)) return {};
  fs::path reached;
  for (const fs::path& part : directory_) {
    reached /= part;
    auto place = OutputPlace::find(reached);
    if (!place) return {};
    // All for the user alone, as the XDG specification asks.
    if (place->there() == OutputPlace::There::kNothing && make)
      static_cast<void>(::mkdirat(place->directory().get(), place->name().c_str(), 0700));
  }
  auto place = OutputPlace::find(directory_);
  struct stat status {};
  // What lies in a directory that others own is not to be trusted.
  if (!place || place->there() != OutputPlace::There::kDirectory || ::fstat(place->directory().get(), &status) != 0 ||
      status.st_uid != ::geteuid())
    return {};
  return Descriptor(::fcntl(place->directory().get(), F_DUPFD_CLOEXEC, 3));
}

bool CacheDirectory::make_mark(const std::string& name) const {
  const Descriptor directory = hold(true);
  return directory &&
         Descriptor(::openat(directory.get(), name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
}

bool CacheDirectory::save(const fs::path& file, const std::function<bool(int fd)>& write) const {
  if (file.empty()) return false;
  const Descriptor directory = hold(true);
  if (!directory) return false;
  const std::string name = file.filename();
  auto made = NewFile::create(directory, name);
  // No fsync: after a crash of the machine checksums find a file that is not whole.
  if (!made || !write(made->descriptor()) || made->settle() != 0 || made->replace(name) != 0) return false;
  drop_oldest(directory);
  return true;
}

void CacheDirectory::drop_oldest(const Descriptor& directory) const {
  struct Entry {
    std::int64_t used;
    std::uint64_t size;
    std::string name;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  Descriptor listed(::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> list(listed ? ::fdopendir(listed.get()) : nullptr, ::closedir);
  if (!list) return;
  listed.release();  // the list's
  const std::time_t now = ::time(nullptr);
  while (const dirent* entry = ::readdir(list.get())) {
    const std::string name = entry->d_name;
    struct stat status {};
    if (name.find(suffix_) == std::string::npos) continue;
    // Another process may drop the same files.
    if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
      continue;
    if (!name.ends_with(suffix_)) {
      if (now - status.st_mtim.tv_sec > kAbandonedSeconds) ::unlinkat(directory.get(), name.c_str(), 0);
      continue;
    }
    entries.push_back({ns_of(status.st_atim), static_cast<std::uint64_t>(status.st_size), name});
    total += entries.back().size;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    if (::unlinkat(directory.get(), entry.name.c_str(), 0) == 0) total -= entry.size;
  }
}

}  // namespace karst
