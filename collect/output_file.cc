#include "collect/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace karst::collect {
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

  // A name near the limit must not fail for the sake of our suffix.
  const std::string shown = file.final_path_.filename().string().substr(0, 200);
  std::string temporary = (file.final_path_.parent_path() / ("." + shown + ".XXXXXX")).string();
  file.fd_ = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file.fd_ < 0) {
    return refuse(reason(errno), "name a file in a directory that exists and that you may write to");
  }
  file.temporary_ = std::move(temporary);
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
      temporary_(std::exchange(other.temporary_, {})),
      buffer_(std::move(other.buffer_)),
      memory_(other.memory_) {}

OutputFile::~OutputFile() { remove_temporary(); }

void OutputFile::remove_temporary() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void OutputFile::append(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (memory_ != nullptr) {
    memory_->insert(memory_->end(), bytes.begin(), bytes.end());
    return;
  }
  if (error_ != 0) return;
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
  return Error{
      fmt::format("cannot write the trace {}: {}; it needs {} bytes in all ({:.1f} MiB) and nothing was kept; {}",
                  final_path_.string(), reason(error_), size_, static_cast<double>(size_) / (1 << 20),
                  space ? "free that much or name a file on another disk" : "name a file on another disk")};
}

Status OutputFile::commit(std::span<const std::byte> new_start) {
  if (memory_ != nullptr) {
    std::copy(new_start.begin(), new_start.end(), memory_->begin());
    return Unit{};
  }
  flush();
  if (error_ == 0 && ::lseek(fd_, 0, SEEK_SET) < 0) error_ = errno;
  if (error_ == 0) error_ = write_fully(fd_, new_start.data(), new_start.size());
  // Some file systems report a full disk only here.
  const int closed = ::close(std::exchange(fd_, -1));
  if (error_ == 0 && closed != 0 && errno != EINTR) error_ = errno;
  if (error_ == 0 && ::rename(temporary_.c_str(), final_path_.c_str()) != 0) error_ = errno;
  if (error_ != 0) {
    remove_temporary();
    return write_error();
  }
  temporary_.clear();
  return Unit{};
}

}  // namespace karst::collect
