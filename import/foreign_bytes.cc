// SPDX-License-Identifier: MIT
// zlib reads a file that is not gzip's as it is.
#include <fcntl.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/descriptor.h"
#include "import/import.h"

namespace karst::importing {
namespace {

constexpr std::size_t kMost = (std::size_t{1} << 32) - 4096;  // simdjson's limit is 4 GiB
constexpr std::size_t kStep = std::size_t{1} << 20;           // bytes read at once

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};

}  // namespace

Result<std::string> read_foreign(int opened) {
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

}  // namespace karst::importing
