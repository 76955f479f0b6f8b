// SPDX-License-Identifier: MIT
#include "write/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/output_place.h"

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

/// `written` grows by what was.
int write_fully(int fd, const std::byte* data, std::size_t size, std::uint64_t& written) {
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
    written += static_cast<std::uint64_t>(n);
  }
  return 0;
}

int pwrite_fully(int fd, std::span<const std::byte> bytes, std::uint64_t at) {
  if (::lseek(fd, static_cast<off_t>(at), SEEK_SET) < 0) return errno;
  std::uint64_t written = 0;
  return write_fully(fd, bytes.data(), bytes.size(), written);
}

/// Some file systems cannot, which is not our failure.
int flush_to_disk(int fd) { return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno; }

}  // namespace

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) { return begin(path, false); }

Result<OutputFile> OutputFile::create_numbered(const std::string& stem) { return begin(stem, true); }

Result<OutputFile> OutputFile::begin(const std::filesystem::path& path, bool numbered) {
  const auto refuse = [&path](const std::string& why, const char* advice) {
    return Error{fmt::format("cannot write the trace {}: {}; {}", path.string(), why, advice)};
  };
  constexpr const char* kAnother = "name a file in a directory that exists and that you may write to";
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  auto place = OutputPlace::find(numbered ? directory : path, OutputPlace::Opened::kByItsName);
  if (!place) return refuse(place.error().message, kAnother);
  switch (place->there()) {
    case OutputPlace::There::kDirectory:
      if (numbered) break;
      return refuse("it is a directory", "name a file in it");
    case OutputPlace::There::kSpecial:
    case OutputPlace::There::kOpened:
      return refuse("it is not a regular file", "name a regular file");
    case OutputPlace::There::kFile:
    case OutputPlace::There::kNothing:
      break;
  }
  OutputFile file;
  file.final_path_ = numbered ? path : place->path();
  file.name_ = file.final_path_.filename();
  auto made = NewFile::create(place->directory(), file.name_);
  if (!made) return refuse(made.error().message, kAnother);
  file.file_ = std::move(*made);
  file.numbered_ = numbered;
  file.buffer_.reserve(kBufferSize);
  return file;
}

OutputFile OutputFile::to_memory(std::vector<std::byte>& out) {
  OutputFile file;
  out.clear();
  file.memory_ = &out;
  return file;
}

OutputFile::~OutputFile() = default;

Descriptor OutputFile::duplicate() const { return Descriptor(::fcntl(file_.descriptor(), F_DUPFD_CLOEXEC, 3)); }

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
  if (buffer_.size() + bytes.size() > kBufferSize) write_out();
  if (bytes.size() >= kBufferSize) {
    write_out(bytes);
    return;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void OutputFile::write_out() {
  write_out(buffer_);
  buffer_.clear();
}

void OutputFile::write_out(std::span<const std::byte> bytes) {
  if (error_ == 0) error_ = write_fully(file_.descriptor(), bytes.data(), bytes.size(), written_);
}

void OutputFile::flush() {
  if (memory_ == nullptr && !published_) write_out();
}

Status OutputFile::grow(std::span<const std::byte> new_start) {
  flush();
  write_at_start(new_start);
  if (error_ == 0 && ::lseek(file_.descriptor(), static_cast<off_t>(size_), SEEK_SET) < 0) error_ = errno;
  if (error_ == 0) take_name();
  if (error_ != 0) return write_error();
  grows_ = true;
  return Unit{};
}

std::string OutputFile::cut_back(std::uint64_t size) {
  if (!grows_ || error_ == 0) return {};
  std::string why = reason(error_);
  static_cast<void>(::ftruncate(file_.descriptor(), static_cast<off_t>(size)));
  static_cast<void>(::lseek(file_.descriptor(), static_cast<off_t>(size), SEEK_SET));
  size_ = written_ = size;
  buffer_.clear();
  error_ = 0;
  return why;
}

Error OutputFile::write_error() const {
  const bool space = error_ == ENOSPC || error_ == EDQUOT || error_ == EFBIG;
  if (published_)
    return Error{
        fmt::format("cannot add names and sources to the trace {}: {}; it has all events, and 'karst resolve' "
                    "adds the rest{}",
                    final_path_.string(), reason(error_),
                    space ? fmt::format(" once {} bytes more are free", buffer_.size()) : "")};
  if (grows_)
    return Error{
        fmt::format("cannot finish the trace {}: {}; it has what was written by then, and 'karst resolve' adds names",
                    final_path_.string(), reason(error_))};
  return Error{
      fmt::format("cannot write the trace {}: {}; it needs {} bytes in all ({:.1f} MiB) and nothing was kept; {}",
                  final_path_.string(), reason(error_), size_, static_cast<double>(size_) / (1 << 20),
                  space ? "free that much or name a file on another disk" : "name a file on another disk")};
}

void OutputFile::take_name() {
  if (numbered_) {
    const std::string stem = name_;
    error_ = EEXIST;
    for (int number = 1; error_ == EEXIST && number < 1'000'000; ++number) {
      name_ = stem + "-" + std::to_string(number) + ".karst";
      error_ = file_.take_free_name(name_);
    }
    final_path_.replace_filename(name_);
  } else {
    error_ = file_.replace(name_);
  }
}

void OutputFile::write_at_start(std::span<const std::byte> bytes) {
  if (error_ == 0) error_ = pwrite_fully(file_.descriptor(), bytes, 0);
}

Status OutputFile::publish(std::span<const std::byte> new_start, std::uint64_t keep) {
  if (memory_ != nullptr) {
    std::copy(new_start.begin(), new_start.end(), memory_->begin());
    memory_->resize(keep);
    size_ = keep;
    return Unit{};
  }
  write_out();
  write_at_start(new_start);
  if (error_ == 0) {
    first_ending_.resize(size_ - keep);
    const auto size = static_cast<ssize_t>(first_ending_.size());
    if (::pread(file_.descriptor(), first_ending_.data(), first_ending_.size(), static_cast<off_t>(keep)) != size)
      error_ = EIO;
  }
  if (error_ == 0) error_ = flush_to_disk(file_.descriptor());
  if (error_ == 0 && !grows_) take_name();
  if (error_ != 0) {
    const Error error = write_error();
    file_ = NewFile();
    return error;
  }
  published_ = true;
  keep_ = size_ = keep;
  if (const int late = file_.flush_directory(); late != 0)
    return Error{fmt::format("the trace {} is written, but whether its name is on the disk is not known: {}",
                             final_path_.string(), reason(late))};
  return Unit{};
}

Status OutputFile::commit(std::span<const std::byte> new_start) {
  if (!published_) {
    if (Status done = publish(new_start, size_); !done || memory_ != nullptr) return done;
  } else if (Status done = add_second_part(new_start); !done) {
    return done;
  }
  file_ = NewFile();  // what a close could report, fsync has
  return Unit{};
}

Status OutputFile::add_second_part(std::span<const std::byte> new_start) {
  if (error_ == 0) error_ = pwrite_fully(file_.descriptor(), buffer_, keep_);
  // The start says that the second part is there: not before it is.
  if (error_ == 0) error_ = flush_to_disk(file_.descriptor());
  write_at_start(new_start);
  if (error_ == 0) return Unit{};
  static_cast<void>(::ftruncate(file_.descriptor(), static_cast<off_t>(keep_)));
  static_cast<void>(pwrite_fully(file_.descriptor(), first_ending_, keep_));
  return write_error();
}

}  // namespace karst::writing
