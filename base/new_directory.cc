// SPDX-License-Identifier: MIT
#include "base/new_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/hidden_name.h"
#include "base/output_place.h"

namespace karst {
namespace {

Error cannot_make(const std::filesystem::path& path, const std::string& why) {
  return Error{fmt::format("cannot write {}: {}", path.string(), why)};
}

bool is_empty(const Descriptor& directory) {
  const int copy = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(copy), ::closedir);
  if (entries == nullptr) return false;
  while (const dirent* entry = ::readdir(entries.get()))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) return false;
  return true;
}

/// The name by which `parent` has that directory itself, and no link to it.
std::string name_in(const Descriptor& parent, const Descriptor& directory, const std::filesystem::path& path) {
  const std::filesystem::path plain = path.lexically_normal();
  const std::string name = (plain.has_filename() ? plain : plain.parent_path()).filename();
  struct stat by_name {
  }, itself{};
  const bool same = ::fstatat(parent.get(), name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
                    ::fstat(directory.get(), &itself) == 0 && by_name.st_ino == itself.st_ino &&
                    by_name.st_dev == itself.st_dev;
  return same ? name : std::string();
}

}  // namespace

Result<NewDirectory> NewDirectory::create(const std::filesystem::path& path) {
  auto place = OutputPlace::find(path);
  if (!place) return cannot_make(path, place.error().message);
  NewDirectory made;
  made.path_ = path;
  using There = OutputPlace::There;
  if (place->there() == There::kNothing) {
    made.parent_ = Descriptor(::fcntl(place->directory().get(), F_DUPFD_CLOEXEC, 3));
    made.name_ = place->name();
  } else if (place->there() == There::kDirectory) {
    if (!is_empty(place->directory()))
      return cannot_make(path, "there is a directory with files in it; choose a new name");
    made.parent_ = Descriptor(::openat(place->directory().get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (made.parent_) made.name_ = name_in(made.parent_, place->directory(), path);
    if (made.name_.empty()) return cannot_make(path, "it is not a directory's own name; choose a new name");
  } else {
    return cannot_make(path, "a directory is to be made there, and there is something else; choose a new name");
  }
  if (!made.parent_) return cannot_make(path, std::strerror(errno));
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && made.hidden_.empty(); ++i) {
    const std::string hidden = hidden_name(made.name_);
    if (::mkdirat(made.parent_.get(), hidden.c_str(), 0700) == 0)
      made.hidden_ = hidden;
    else if (errno != EEXIST)
      break;
  }
  if (made.hidden_.empty()) return cannot_make(path, std::strerror(errno));
  made.directory_ =
      Descriptor(::openat(made.parent_.get(), made.hidden_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made.directory_) return cannot_make(path, std::strerror(errno));
  return made;
}

NewDirectory::NewDirectory(NewDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      parent_(std::move(other.parent_)),
      directory_(std::move(other.directory_)),
      hidden_(std::exchange(other.hidden_, {})),
      name_(std::move(other.name_)) {}

NewDirectory::~NewDirectory() {
  if (hidden_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(fmt::format("/proc/self/fd/{}/{}", parent_.get(), hidden_), ignored);
}

std::string NewDirectory::path() const { return fmt::format("/proc/self/fd/{}", directory_.get()); }

Status NewDirectory::finish() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  static_cast<void>(::fchmod(directory_.get(), 0777 & ~mask));
  // In place of an empty directory, and of nothing else.
  if (::renameat(parent_.get(), hidden_.c_str(), parent_.get(), name_.c_str()) != 0)
    return cannot_make(path_, std::strerror(errno));
  hidden_.clear();
  return Unit{};
}

}  // namespace karst
