// SPDX-License-Identifier: MIT
#include "base/trusted_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace karst {
namespace {

namespace fs = std::filesystem;

Error error_at(const fs::path& path, const std::string& why) { return {path.string() + " is not read: " + why}; }
Error error_at(const fs::path& path) { return error_at(path, std::strerror(errno)); }

/// Why root must not use it; empty: it may. A sticky directory keeps others from what is root's in it.
std::string objection(const struct stat& status) {
  if (status.st_uid != 0) return fmt::format("it belongs to user {}, and karst runs as root", status.st_uid);
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool is_sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  return others_write && !is_sticky ? "other users may write to it, and karst runs as root" : std::string();
}

/// Links are followed before; what is met on the way is no link then, or is not opened.
Result<Descriptor> walk(const fs::path& path) {
  Descriptor at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  fs::path reached = "/";
  struct stat status {};
  for (const fs::path& part : path.relative_path()) {
    reached /= part;
    at = Descriptor(::openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!at || ::fstat(at.get(), &status) != 0) return error_at(reached);
    if (const std::string why = objection(status); !why.empty()) return error_at(reached, why);
  }
  // Where files are put, others must not put any.
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return error_at(path, "other users may write to it, and karst runs as root");
  Descriptor opened(::openat(at.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return error_at(path);
  return opened;
}

}  // namespace

Result<TrustedDirectory> TrustedDirectory::open(const fs::path& path, Trust trust) {
  const bool is_checked = trust == Trust::kChecked && ::geteuid() == 0;
  if (!is_checked) {
    Descriptor opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened) return error_at(path);
    return TrustedDirectory(std::move(opened), path, is_checked);
  }
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) == nullptr) return error_at(path);
  auto opened = walk(real);
  if (!opened) return opened.error();
  return TrustedDirectory(std::move(*opened), real, is_checked);
}

std::vector<std::string> TrustedDirectory::names() const {
  std::vector<std::string> all;
  // A descriptor of its own, as it has a place in the list.
  Descriptor again(::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct Close {
    void operator()(DIR* list) const { ::closedir(list); }
  };
  const std::unique_ptr<DIR, Close> list(again ? ::fdopendir(again.get()) : nullptr);
  if (list == nullptr) return all;
  static_cast<void>(again.release());
  while (const dirent* const one = ::readdir(list.get()))
    if (one->d_name[0] != '.') all.emplace_back(one->d_name);
  std::sort(all.begin(), all.end());
  return all;
}

Result<std::string> TrustedDirectory::read(const std::string& name, std::size_t most) const {
  const fs::path path = path_of(name);
  // Not to be held up by a pipe. Links are not followed where it matters whose the file is.
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (is_checked_ ? O_NOFOLLOW : 0);
  const Descriptor file(::openat(directory_.get(), name.c_str(), flags));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    return errno == ELOOP ? error_at(path, "it is a symbolic link, and karst runs as root") : error_at(path);
  if (!S_ISREG(status.st_mode)) return error_at(path, "it is no regular file");
  if (const std::string why = is_checked_ ? objection(status) : std::string(); !why.empty()) return error_at(path, why);
  std::string text;
  char piece[4096];
  while (true) {
    const ssize_t n = ::read(file.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error_at(path);
    if (n == 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
    if (text.size() > most) return error_at(path, fmt::format("it has more than {} bytes", most));
  }
}

}  // namespace karst
