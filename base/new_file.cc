// SPDX-License-Identifier: MIT
#include "base/new_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/hidden_name.h"

namespace karst {
namespace {

/// A temporary name for a signal handler. What is in it is never freed, so that the handler may read it at any time.
struct Noted {
  std::atomic<int> directory{-1};
  char name[256];
};
std::array<Noted, 4> g_noted;

int note(int directory, const std::string& name) {
  for (std::size_t i = 0; i < g_noted.size(); ++i) {
    if (g_noted[i].directory >= 0 || name.size() >= sizeof g_noted[i].name) continue;
    std::memcpy(g_noted[i].name, name.c_str(), name.size() + 1);
    g_noted[i].directory = directory;
    return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

Result<NewFile> NewFile::create(const Descriptor& directory, const std::string& name) {
  NewFile made;
  made.directory_ = Descriptor(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 3));
  if (!made.directory_) return Error{std::strerror(errno)};
  // By /proc it gets a name.
  if (::access("/proc/self/fd", X_OK) == 0)
    made.file_ = Descriptor(::openat(made.directory_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && !made.file_ && errno != EMFILE && errno != ENFILE; ++i) {
    const std::string hidden = hidden_name(name);
    made.file_ = Descriptor(
        ::openat(made.directory_.get(), hidden.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (made.file_) {
      made.temporary_ = hidden;
      made.noted_ = note(made.directory_.get(), hidden);
    } else if (errno != EEXIST && errno != EINTR) {
      break;
    }
  }
  if (!made.file_) return Error{std::strerror(errno)};
  return made;
}

NewFile::NewFile(NewFile&& other) noexcept
    : directory_(std::move(other.directory_)),
      file_(std::move(other.file_)),
      temporary_(std::exchange(other.temporary_, {})),
      noted_(std::exchange(other.noted_, -1)) {}

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(file_, other.file_);
  std::swap(temporary_, other.temporary_);
  std::swap(noted_, other.noted_);
  return *this;
}

NewFile::~NewFile() { remove_temporary(); }

void NewFile::named() {
  temporary_.clear();
  if (noted_ >= 0) g_noted[static_cast<std::size_t>(noted_)].directory = -1;
  noted_ = -1;
}

void NewFile::remove_temporary() {
  if (!temporary_.empty()) ::unlinkat(directory_.get(), temporary_.c_str(), 0);
  named();
}

void NewFile::remove_temporary_now() {
  for (const Noted& noted : g_noted)
    if (const int directory = noted.directory; directory >= 0) ::unlinkat(directory, noted.name, 0);
}

/// Fails with EEXIST where the name is taken.
int NewFile::link_as(const std::string& name) const {
  const std::string own = "/proc/self/fd/" + std::to_string(file_.get());
  return ::linkat(AT_FDCWD, own.c_str(), directory_.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

void NewFile::take_usual_mode() const {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  static_cast<void>(::fchmod(file_.get(), 0666 & ~mask));
}

int NewFile::take_free_name(const std::string& name) {
  const int directory = directory_.get();
  if (temporary_.empty()) {
    if (const int error = link_as(name); error != 0) return error;
  } else if (::renameat2(directory, temporary_.c_str(), directory, name.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno != EINVAL) return errno;
    // File systems without that flag have links, or cannot give a name safely at all.
    if (::linkat(directory, temporary_.c_str(), directory, name.c_str(), 0) != 0) return errno;
    ::unlinkat(directory, temporary_.c_str(), 0);
  }
  named();
  return 0;
}

int NewFile::replace(const std::string& name) {
  const int directory = directory_.get();
  if (temporary_.empty()) {
    int error = link_as(name);
    if (error == 0) named();
    if (error != EEXIST) return error;
    // A link cannot replace a file: by way of a second name, for the moment between two system calls.
    constexpr int kTries = 100;
    for (int i = 0; i < kTries && error == EEXIST; ++i) {
      temporary_ = hidden_name(name);
      error = link_as(temporary_);
      if (error != 0) temporary_.clear();
    }
    if (error != 0) return error;
    noted_ = note(directory, temporary_);
  }
  if (::renameat(directory, temporary_.c_str(), directory, name.c_str()) != 0) return errno;
  named();
  return 0;
}

int NewFile::flush_directory() const {
  const Descriptor directory(::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return 0;  // one that may be written and not read
  return ::fsync(directory.get()) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}

int NewFile::settle() const {
  Descriptor copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 3));
  return !copy || copy.close() || errno == EINTR ? 0 : errno;
}

}  // namespace karst
