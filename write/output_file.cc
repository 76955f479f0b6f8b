#include "write/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace karst::writing {
namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 20;

std::string reason(int error) { return std::generic_category().message(error); }

// A write past RLIMIT_FSIZE raises SIGXFSZ, which would end the process; we want the EFBIG that comes with it.
class HoldFileSizeSignal {
 public:
  HoldFileSizeSignal() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set_, &old_);
  }
  HoldFileSizeSignal(const HoldFileSizeSignal&) = delete;
  HoldFileSizeSignal& operator=(const HoldFileSizeSignal&) = delete;
  ~HoldFileSizeSignal() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  void discard() const {
    const timespec now{};
    sigtimedwait(&set_, nullptr, &now);
  }

 private:
  sigset_t set_{};
  sigset_t old_{};
};

int write_fully(int fd, const std::byte* data, std::size_t size) {
  const HoldFileSizeSignal hold;
  while (size != 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : EIO;
      if (error == EFBIG) hold.discard();
      return error;
    }
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return 0;
}

int pwrite_fully(int fd, std::span<const std::byte> bytes, std::uint64_t at) {
  if (::lseek(fd, static_cast<off_t>(at), SEEK_SET) < 0) return errno;
  return write_fully(fd, bytes.data(), bytes.size());
}

/// Some file systems cannot, which is not our failure.
int flush_to_disk(int fd) { return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno; }

int flush_directory(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return 0;  // a directory that may be written and not read
  const int error = flush_to_disk(fd);
  ::close(fd);
  return error;
}

// The one that a signal handler removes. A process writes one trace at a time; of several the last one counts.
std::atomic<char*> g_temporary{nullptr};

}  // namespace

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  const auto refuse = [&path](const std::string& why, const char* advice) {
    return Error{fmt::format("cannot write the trace {}: {}; {}", path.string(), why, advice)};
  };
  if (path.empty()) return Error{"cannot write the trace: its file name is empty; name a file"};
  OutputFile file;
  file.final_path_ = path;
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    std::error_code ec;
    file.final_path_ = std::filesystem::weakly_canonical(path, ec);
    if (ec) return refuse(ec.message(), "name a regular file");
  }
  if (::stat(file.final_path_.c_str(), &info) == 0) {
    // Renaming onto a device node would replace the node.
    if (S_ISDIR(info.st_mode)) return refuse("it is a directory", "name a file in it");
    if (!S_ISREG(info.st_mode)) return refuse("it is not a regular file", "name a regular file");
  } else if (errno != ENOENT) {
    return refuse(reason(errno), "name a file in a directory that exists and that you may write to");
  }
  if (!file.final_path_.has_filename()) return refuse("it names a directory", "name a file");
  return begin(std::move(file));
}

Result<OutputFile> OutputFile::create_numbered(const std::string& stem) {
  OutputFile file;
  file.final_path_ = stem;
  file.numbered_ = true;
  return begin(std::move(file));
}

Result<OutputFile> OutputFile::begin(OutputFile file) {
  const std::filesystem::path parent = file.final_path_.parent_path();
  file.fd_ = ::open(parent.empty() ? "." : parent.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file.fd_ < 0) {
    // A name near the limit must not fail for the sake of our suffix.
    const std::string shown = file.final_path_.filename().string().substr(0, 200);
    file.temporary_ = (parent / ("." + shown + ".XXXXXX")).string();
    file.fd_ = ::mkostemp(file.temporary_.data(), O_CLOEXEC);
    if (file.fd_ < 0) {
      file.temporary_.clear();
      return Error{
          fmt::format("cannot write the trace {}: {}; name a file in a directory that exists and that you may write to",
                      file.final_path_.string(), reason(errno))};
    }
    // Given up, never freed: a handler may be reading the one before it.
    g_temporary = ::strdup(file.temporary_.c_str());
  }
  file.buffer_.reserve(kBufferSize);
  return file;
}

OutputFile OutputFile::to_memory(std::vector<std::byte>& out) {
  OutputFile file;
  out.clear();
  file.memory_ = &out;
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      error_(other.error_),
      size_(other.size_),
      final_path_(std::move(other.final_path_)),
      numbered_(other.numbered_),
      published_(other.published_),
      temporary_(std::exchange(other.temporary_, {})),
      buffer_(std::move(other.buffer_)),
      keep_(other.keep_),
      first_ending_(std::move(other.first_ending_)),
      memory_(other.memory_) {}

OutputFile::~OutputFile() { remove_temporary(); }

void OutputFile::remove_temporary() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  if (!published_) g_temporary = nullptr;
}

void OutputFile::remove_temporary_now() {
  if (const char* path = g_temporary; path != nullptr) ::unlink(path);
}

void OutputFile::append(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (memory_ != nullptr) {
    memory_->insert(memory_->end(), bytes.begin(), bytes.end());
    return;
  }
  if (error_ != 0) return;
  if (published_) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return;
  }
  if (buffer_.size() + bytes.size() > kBufferSize) flush();
  if (bytes.size() >= kBufferSize) {
    if (error_ == 0) error_ = write_fully(fd_, bytes.data(), bytes.size());
    return;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void OutputFile::flush() {
  if (error_ == 0) error_ = write_fully(fd_, buffer_.data(), buffer_.size());
  buffer_.clear();
}

Error OutputFile::write_error() const {
  const bool space = error_ == ENOSPC || error_ == EDQUOT || error_ == EFBIG;
  if (published_)
    return Error{
        fmt::format("cannot add names and sources to the trace {}: {}; it has all events, and 'karst resolve' "
                    "adds the rest{}",
                    final_path_.string(), reason(error_),
                    space ? fmt::format(" once {} bytes more are free", buffer_.size()) : "")};
  return Error{
      fmt::format("cannot write the trace {}: {}; it needs {} bytes in all ({:.1f} MiB) and nothing was kept; {}",
                  final_path_.string(), reason(error_), size_, static_cast<double>(size_) / (1 << 20),
                  space ? "free that much or name a file on another disk" : "name a file on another disk")};
}

/// Fails with EEXIST where the name is taken.
int OutputFile::link_as(const std::filesystem::path& path) const {
  if (!temporary_.empty()) {
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL) return errno;
    // File systems without that flag have links, or cannot give a name safely at all.
    if (::link(temporary_.c_str(), path.c_str()) != 0) return errno;
    ::unlink(temporary_.c_str());
    return 0;
  }
  const std::string own = "/proc/self/fd/" + std::to_string(fd_);
  return ::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

void OutputFile::take_name() {
  if (numbered_) {
    const std::string stem = final_path_.string();
    error_ = EEXIST;
    for (int number = 1; error_ == EEXIST && number < 1'000'000; ++number) {
      final_path_ = stem + "-" + std::to_string(number) + ".karst";
      error_ = link_as(final_path_);
    }
    if (error_ != 0) return;
  } else if (!temporary_.empty()) {
    if (::rename(temporary_.c_str(), final_path_.c_str()) != 0) error_ = errno;
    if (error_ != 0) return;
  } else if (error_ = link_as(final_path_); error_ == EEXIST) {
    // A link cannot replace a file: by way of a second name, for the moment between two system calls.
    const std::string shown = final_path_.filename().string().substr(0, 200);
    for (int attempt = 0; error_ == EEXIST && attempt < 100; ++attempt) {
      const auto name = "." + shown + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt);
      const std::string between = (final_path_.parent_path() / name).string();
      error_ = link_as(between);
      if (error_ == 0 && ::rename(between.c_str(), final_path_.c_str()) != 0) {
        error_ = errno;
        ::unlink(between.c_str());
        return;
      }
    }
  }
  if (error_ != 0) return;
  temporary_.clear();
  g_temporary = nullptr;
  error_ = flush_directory(final_path_);
}

void OutputFile::write_at_start(std::span<const std::byte> bytes) {
  if (error_ == 0) error_ = pwrite_fully(fd_, bytes, 0);
}

Status OutputFile::publish(std::span<const std::byte> new_start, std::uint64_t keep) {
  if (memory_ != nullptr) {
    std::copy(new_start.begin(), new_start.end(), memory_->begin());
    memory_->resize(keep);
    size_ = keep;
    return Unit{};
  }
  flush();
  write_at_start(new_start);
  if (error_ == 0) {
    first_ending_.resize(size_ - keep);
    const auto size = static_cast<ssize_t>(first_ending_.size());
    if (::pread(fd_, first_ending_.data(), first_ending_.size(), static_cast<off_t>(keep)) != size) error_ = EIO;
  }
  if (error_ == 0) error_ = flush_to_disk(fd_);
  if (error_ == 0) take_name();
  if (error_ != 0) {
    const Error error = write_error();
    remove_temporary();
    return error;
  }
  published_ = true;
  keep_ = size_ = keep;
  return Unit{};
}

Status OutputFile::commit(std::span<const std::byte> new_start) {
  if (!published_) {
    if (const Status done = publish(new_start, size_); !done || memory_ != nullptr) return done;
  } else if (const Status done = add_second_part(new_start); !done) {
    return done;
  }
  ::close(std::exchange(fd_, -1));  // what it could report, fsync has
  return Unit{};
}

Status OutputFile::add_second_part(std::span<const std::byte> new_start) {
  if (error_ == 0) error_ = pwrite_fully(fd_, buffer_, keep_);
  // The start says that the second part is there: not before it is.
  if (error_ == 0) error_ = flush_to_disk(fd_);
  write_at_start(new_start);
  if (error_ == 0) return Unit{};
  static_cast<void>(::ftruncate(fd_, static_cast<off_t>(keep_)));
  static_cast<void>(pwrite_fully(fd_, first_ending_, keep_));
  return write_error();
}

}  // namespace karst::writing
