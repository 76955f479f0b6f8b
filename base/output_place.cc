// SPDX-License-Identifier: MIT
#include "base/output_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace karst {
namespace {

constexpr int kMostLinks = 40;  // the kernel's own bound

Error error_of(int number) { return {std::strerror(number)}; }

bool is_trusted(uid_t user) { return user == 0 || user == ::geteuid(); }

bool others_may_write(const struct stat& directory) { return (directory.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

/// Nobody but root or ourselves can have put that link there.
bool may_follow(const struct stat& directory, const struct stat& link) {
  if (!is_trusted(link.st_uid) || !is_trusted(directory.st_uid)) return false;
  if (!others_may_write(directory)) return true;
  if (::geteuid() != 0 && link.st_uid == ::geteuid()) return true;
  return (directory.st_mode & S_ISVTX) != 0 && link.st_nlink == 1;
}

/// It is nobody's bait: who could have made a pipe there would read, or hold up, what we write.
bool may_write_to(const struct stat& directory, const struct stat& special) {
  return is_trusted(special.st_uid) || (is_trusted(directory.st_uid) && !others_may_write(directory));
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && (a.st_mode & S_IFMT) == (b.st_mode & S_IFMT);
}

bool is_of_proc(const Descriptor& file) {
  struct statfs system {};
  return ::fstatfs(file.get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

Result<std::string> text_of(const Descriptor& link) {
  char text[PATH_MAX];
  const ssize_t size = ::readlinkat(link.get(), "", text, sizeof text);
  if (size < 0) return error_of(errno);
  if (size == sizeof text) return error_of(ENAMETOOLONG);
  return std::string(text, static_cast<std::size_t>(size));
}

/// That descriptor of this process, if it leads to this file; else -1.
int own_number(const std::string& name, const struct stat& file) {
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  struct stat own {};
  const bool is_own = error == std::errc() && end == name.data() + name.size() && number >= 0 &&
                      ::fstat(number, &own) == 0 && is_same(own, file);
  return is_own ? number : -1;
}

}  // namespace

/// One search: the directory that was reached, and the components that are left.
class PlaceSearch {
 public:
  explicit PlaceSearch(OutputPlace::Opened opened) : opened_(opened) {}

  Result<OutputPlace> find(const std::filesystem::path& path) {
    if (path.empty()) return Error{"its file name is empty"};
    if (const Status begun = follow(path.string()); !begun) return begun.error();
    while (!left_.empty()) {
      std::string part = std::move(left_.back());
      left_.pop_back();
      if (part == "." && !left_.empty()) continue;
      const Status done = part == "." || part == ".." ? go_to(part) : step(std::move(part));
      if (!done) return done.error();
    }
    if (place_.there_ == OutputPlace::There::kDirectory) {
      place_.directory_ = std::move(directory_);
      place_.path_ = std::move(shown_);
    }
    return std::move(place_);
  }

 private:
  /// From the directory that was reached, or from the root.
  Status follow(std::string_view path) {
    if (path.empty()) return error_of(ENOENT);
    if (path.front() == '/' || !directory_) {
      directory_ = Descriptor(::open(path.front() == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!directory_) return error_of(errno);
      shown_ = path.front() == '/' ? "/" : "";
    }
    std::vector<std::string> parts;
    if (path.back() == '/') parts.emplace_back(".");
    while (!path.empty()) {
      const std::size_t at = path.rfind('/');
      const std::string_view part = at == std::string_view::npos ? path : path.substr(at + 1);
      path = path.substr(0, at == std::string_view::npos ? 0 : at);
      if (!part.empty()) parts.emplace_back(part);
    }
    if (parts.empty()) parts.emplace_back(".");
    left_.insert(left_.end(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
    return Unit{};
  }

  /// Into a directory that needs no look at who made its name.
  Status go_to(const std::string& part) {
    Descriptor next(::openat(directory_.get(), part.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next) return error_of(errno);
    if (left_.empty()) place_.there_ = OutputPlace::There::kDirectory;
    directory_ = std::move(next);
    shown_ /= part;
    return Unit{};
  }

  Status step(std::string part) {
    const bool is_last = left_.empty();
    Descriptor there(::openat(directory_.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!there && errno == ENOENT && is_last && !named_as_opened_)
      return take(std::move(part), OutputPlace::There::kNothing, status);
    if (!there || ::fstat(there.get(), &status) != 0) return error_of(errno);
    if (S_ISLNK(status.st_mode)) return step_by_link(std::move(part), there, status);
    if (S_ISDIR(status.st_mode)) {
      if (is_last) place_.there_ = OutputPlace::There::kDirectory;
      directory_ = std::move(there);
      shown_ /= part;
      return Unit{};
    }
    if (!is_last) return error_of(ENOTDIR);
    if (named_as_opened_ && !is_same(*named_as_opened_, status))
      return Error{"it is a file that has another name, or none, by now"};
    if (S_ISREG(status.st_mode)) return take(std::move(part), OutputPlace::There::kFile, status);
    struct stat directory {};
    if (::fstat(directory_.get(), &directory) != 0) return error_of(errno);
    if (!may_write_to(directory, status))
      return Error{fmt::format("it is no file, and user {}, to whom it belongs, may have put it there", status.st_uid)};
    place_.held_ = std::move(there);
    return take(std::move(part), OutputPlace::There::kSpecial, status);
  }

  Status step_by_link(std::string part, const Descriptor& link, const struct stat& status) {
    if (++links_ > kMostLinks) return error_of(ELOOP);
    struct stat directory {};
    if (::fstat(directory_.get(), &directory) != 0) return error_of(errno);
    if (!may_follow(directory, status))
      return Error{fmt::format(
          "{} is a symbolic link that others may have put there (it belongs to user {}, its directory to user {}), "
          "and is not followed",
          (shown_ / part).string(), status.st_uid, directory.st_uid)};
    if (is_of_proc(link)) return step_by_kernel(std::move(part), link);
    auto text = text_of(link);
    return text ? follow(*text) : Status(text.error());
  }

  /// By a link of /proc.
  Status step_by_kernel(std::string part, const Descriptor& link) {
    Descriptor there(::openat(directory_.get(), part.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    if (!there || ::fstat(there.get(), &status) != 0) return error_of(errno);
    if (S_ISDIR(status.st_mode)) {
      if (left_.empty()) place_.there_ = OutputPlace::There::kDirectory;
      directory_ = std::move(there);
      shown_ /= part;
      return Unit{};
    }
    if (!left_.empty()) return error_of(ENOTDIR);
    const bool is_file = S_ISREG(status.st_mode);
    if (is_file && opened_ == OutputPlace::Opened::kByItsName) {
      auto text = text_of(link);
      if (!text) return text.error();
      named_as_opened_ = status;
      return follow(*text);
    }
    place_.opened_number_ = own_number(part, status);
    if (place_.opened_number_ >= 0) return take(std::move(part), OutputPlace::There::kOpened, status);
    if (is_file) return Error{"it is an open file of another process"};
    place_.held_ = std::move(there);
    return take(std::move(part), OutputPlace::There::kSpecial, status);
  }

  Status take(std::string part, OutputPlace::There there, const struct stat& status) {
    place_.there_ = there;
    place_.status_ = status;
    place_.path_ = shown_ / part;
    place_.name_ = std::move(part);
    place_.directory_ = std::move(directory_);
    return Unit{};
  }

  const OutputPlace::Opened opened_;
  OutputPlace place_;
  Descriptor directory_;
  std::filesystem::path shown_;
  std::vector<std::string> left_;  // the next one last
  int links_ = 0;
  std::optional<struct stat> named_as_opened_;  // what the name is to lead to
};

Result<OutputPlace> OutputPlace::find(const std::filesystem::path& path, Opened opened) {
  return PlaceSearch(opened).find(path);
}

Result<Descriptor> OutputPlace::open() const {
  Descriptor opened;
  if (there_ == There::kOpened) {
    opened = Descriptor(::fcntl(opened_number_, F_DUPFD_CLOEXEC, 3));
  } else {
    const std::string held = "/proc/self/fd/" + std::to_string(held_.get());
    do opened = Descriptor(::open(held.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    while (!opened && errno == EINTR);
  }
  if (!opened) return error_of(errno);
  return opened;
}

bool OutputPlace::is_writable() const {
  return ::faccessat(directory_.get(), name_.c_str(), W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace karst
