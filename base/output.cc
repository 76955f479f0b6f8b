#include "base/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace karst {
namespace {

std::string reason(int error) { return std::strerror(error); }

std::string advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space or choose another place";
    case EFBIG:
      return "; the file system or a limit (ulimit -f) forbids a file this long";
    case EACCES:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
      return "; choose another place";
    default:
      return "";
  }
}

}  // namespace

Output::Output() : buffer_(std::make_unique_for_overwrite<char[]>(kBufferSize)) {}

Output::Output(Output&& other) noexcept
    : buffer_(std::move(other.buffer_)),
      used_(std::exchange(other.used_, 0)),
      written_(other.written_),
      fd_(std::exchange(other.fd_, -1)),
      owns_fd_(std::exchange(other.owns_fd_, false)),
      error_(other.error_),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      memory_(std::exchange(other.memory_, nullptr)) {}

Output::~Output() {
  if (owns_fd_) ::close(fd_);
  remove_temporary();
}

Output Output::to_stdout() {
  Output output;
  output.fd_ = STDOUT_FILENO;
  output.path_ = "standard output";
  return output;
}

Output Output::to_string(std::string& text) {
  Output output;
  output.memory_ = &text;
  return output;
}

Result<Output> Output::create(const std::filesystem::path& path) {
  if (path == "-") return to_stdout();
  Output output;
  output.path_ = path;
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    return Error{fmt::format("cannot write {}: it is a directory; name a file in it", path.string())};
  }
  if (exists && !S_ISREG(status.st_mode)) {
    output.fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    if (exists && ::access(path.c_str(), W_OK) != 0) {  // a rename would replace it all the same
      return Error{fmt::format("cannot write {}: {}{}", path.string(), reason(errno), advice(errno))};
    }
    // A symbolic link keeps pointing to the file it names: the new content goes there.
    std::error_code ignored;
    const std::filesystem::path target = std::filesystem::weakly_canonical(path, ignored);
    if (!ignored && !target.empty()) output.path_ = target;
    output.temporary_ = output.path_.string() + ".XXXXXX";
    output.fd_ = ::mkostemp(output.temporary_.data(), O_CLOEXEC);
    if (output.fd_ < 0) output.temporary_.clear();
  }
  if (output.fd_ < 0) {
    return Error{fmt::format("cannot write {}: {}{}", path.string(), reason(errno), advice(errno))};
  }
  output.owns_fd_ = true;
  if (!output.temporary_.empty()) {
    // mkostemp makes it private; an export gets what any new file of the user gets, or what it had.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    static_cast<void>(::fchmod(output.fd_, exists ? status.st_mode & 0777 : 0666 & ~mask));
  }
  return output;
}

bool Output::closed_pipe() const { return error_ == EPIPE; }

void Output::write(std::string_view text) {
  written_ += text.size();
  if (memory_ != nullptr) {
    memory_->append(text);
    return;
  }
  while (error_ == 0 && !text.empty()) {
    const ssize_t done = ::write(fd_, text.data(), text.size());
    if (done >= 0) {
      text.remove_prefix(static_cast<std::size_t>(done));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

void Output::flush() {
  write({buffer_.get(), used_});
  used_ = 0;
}

void Output::append_slowly(std::string_view text) {
  flush();
  if (text.size() >= kBufferSize) {
    write(text);
  } else {
    append(text);
  }
}

Error Output::write_error() const {
  return {fmt::format("cannot write {}: {} (after {} bytes){}{}", path_.string(), reason(error_), written_,
                      advice(error_), temporary_.empty() ? "" : "; nothing was left there")};
}

void Output::remove_temporary() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Status Output::finish() {
  flush();
  if (owns_fd_) {
    // Some file systems tell only at close that they had no room.
    if (::close(fd_) != 0 && error_ == 0) error_ = errno;
    owns_fd_ = false;
  }
  if (error_ == 0 && !temporary_.empty()) {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      error_ = errno;
    } else {
      temporary_.clear();
    }
  }
  if (error_ == 0) return Unit{};
  Error error = write_error();
  remove_temporary();
  return error;
}

}  // namespace karst
