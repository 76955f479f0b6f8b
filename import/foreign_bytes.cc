// SPDX-License-Identifier: MIT
// zlib reads a file that is not gzip's as it is, which is how a pipe is read.
#include "import/foreign_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "base/descriptor.h"

namespace karst::importing {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 32;
constexpr std::size_t kStep = std::size_t{1} << 20;  // bytes read at once

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};

bool is_gzip(int file) {
  unsigned char start[2]{};
  return ::pread(file, start, sizeof start, 0) == sizeof start && start[0] == 0x1f && start[1] == 0x8b;
}

Result<std::string> unpacked(int opened) {
  Descriptor own(::fcntl(opened, F_DUPFD_CLOEXEC, 3));
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzdopen(own.get(), "rb"));
  if (file == nullptr) return Error{"there is no memory for it"};
  own.release();
  std::string bytes;
  for (std::size_t size = 0;; size = bytes.size()) {
    bytes.resize(size + kStep);
    const int n = gzread(file.get(), &bytes[size], kStep);
    bytes.resize(size + (n > 0 ? static_cast<std::size_t>(n) : 0));
    int error = Z_OK;
    const char* const why = gzerror(file.get(), &error);
    if (error == Z_ERRNO) return Error{std::strerror(errno)};
    if (error != Z_OK) return Error{std::string("it cannot be unpacked: ") + why};
    if (bytes.size() > kMost) return Error{"it has 4 GiB or more, which is too much"};
    if (n == 0) return bytes;
  }
}

}  // namespace

Result<ForeignBytes> ForeignBytes::read(int file) {
  ForeignBytes result;
  struct stat info {};
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 && !is_gzip(file))
    if (auto mapping = reader::Mapping::of(file, static_cast<std::size_t>(info.st_size))) {
      result.mapped_.emplace(std::move(*mapping));
      return result;
    }
  auto bytes = unpacked(file);
  if (!bytes) return bytes.error();
  result.unpacked_ = std::move(*bytes);
  return result;
}

std::string_view ForeignBytes::view() const {
  if (!mapped_) return unpacked_;
  const auto bytes = mapped_->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace karst::importing
