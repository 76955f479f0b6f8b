// SPDX-License-Identifier: MIT
#include "base/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/output_place.h"

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
      error_(other.error_),
      path_(std::move(other.path_)),
      direct_(std::move(other.direct_)),
      file_(std::move(other.file_)),
      name_(std::move(other.name_)),
      memory_(std::exchange(other.memory_, nullptr)) {}

Output::~Output() = default;

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
  const auto refuse = [&path](const std::string& why, const std::string& advice) {
    return Error{fmt::format("cannot write {}: {}{}", path.string(), why, advice)};
  };
  auto place = OutputPlace::find(path);
  if (!place) return refuse(place.error().message, "; choose another place");
  Output output;
  output.path_ = path;
  switch (place->there()) {
    case OutputPlace::There::kDirectory:
      return refuse("it is a directory", "; name a file in it");
    case OutputPlace::There::kSpecial:
    case OutputPlace::There::kOpened: {
      auto opened = place->open();
      if (!opened) return refuse(opened.error().message, "");
      output.direct_ = std::move(*opened);
      output.fd_ = output.direct_.get();
      return output;
    }
    case OutputPlace::There::kFile:
      if (!place->is_writable()) return refuse(reason(errno), advice(errno));
      break;
    case OutputPlace::There::kNothing:
      break;
  }
  auto made = NewFile::create(place->directory(), place->name());
  if (!made) return refuse(made.error().message, "; choose another place");
  output.file_ = std::move(*made);
  output.fd_ = output.file_.descriptor();
  output.name_ = place->name();
  output.path_ = place->path();
  // An export gets what any new file of the user gets, or what its own file had. Another's mode says nothing to us.
  if (place->there() == OutputPlace::There::kFile && place->status().st_uid == ::geteuid()) {
    static_cast<void>(::fchmod(output.fd_, place->status().st_mode & 0777));
  } else {
    output.file_.take_usual_mode();
  }
  return output;
}

Result<Output> Output::create_in(const Descriptor& directory, const std::string& name) {
  auto made = NewFile::create(directory, name);
  if (!made) return Error{fmt::format("cannot write {}: {}", name, made.error().message)};
  Output output;
  output.file_ = std::move(*made);
  output.fd_ = output.file_.descriptor();
  output.name_ = name;
  output.path_ = name;
  output.file_.take_usual_mode();
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
                      advice(error_), name_.empty() ? "" : "; nothing was left there")};
}

Status Output::finish() {
  flush();
  if (!name_.empty()) {
    if (error_ == 0) error_ = file_.settle();
    if (error_ == 0) error_ = file_.replace(name_);
  } else if (direct_ && !direct_.close() && error_ == 0) {
    error_ = errno;
  }
  file_ = NewFile();
  if (error_ == 0) return Unit{};
  return write_error();
}

}  // namespace karst
