// SPDX-License-Identifier: MIT
#include "reader/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "format/trace.h"
#include "reader/foreign_files.h"

namespace karst::reader {
namespace {

ForeignReader g_foreign_reader = nullptr;

// Below this a copy costs less than the page faults of a mapping, and cannot be pulled away from under us.
constexpr std::size_t kReadBelow = std::size_t{16} << 20;

/// Also one that was cut in its first bytes, or whose line ends were converted: what is wrong with it is told later.
bool begins_as_trace(int file, std::uint64_t size) {
  constexpr std::size_t kEnough = 6;  // the line ends come behind
  unsigned char start[kEnough];
  const std::size_t most = std::min<std::uint64_t>(size, kEnough);
  return ::pread(file, start, most, 0) == static_cast<ssize_t>(most) &&
         std::memcmp(start, format::kFileMagic, most) == 0;
}

/// The trace that was made of a file that is none; empty: there is none.
Result<Descriptor> read_foreign_file(const std::filesystem::path& path, int file, const struct stat& info) {
  const bool may_be_foreign =
      S_ISDIR(info.st_mode) ||
      (S_ISREG(info.st_mode) && info.st_size != 0 && !begins_as_trace(file, static_cast<std::uint64_t>(info.st_size)));
  return may_be_foreign && g_foreign_reader != nullptr ? g_foreign_reader(path) : Descriptor();
}

}  // namespace

void read_foreign_files_by(ForeignReader reader) { g_foreign_reader = reader; }

Result<FileBytes> FileBytes::open(const std::filesystem::path& path, Large large) {
  const auto refuse = [&path](const std::string& why) {
    return Error{fmt::format("cannot open the trace {}: {}", path.string(), why)};
  };
  const auto system_reason = [](int error) { return std::generic_category().message(error); };
  // O_NONBLOCK: a FIFO must not make us wait.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    if (errno == ENOENT) return refuse("there is no such file; check the path");
    return refuse(system_reason(errno));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return refuse(system_reason(errno));
  auto made = read_foreign_file(path, file.get(), info);
  if (!made) return made.error();
  if (*made) {
    file = std::move(*made);
    if (::fstat(file.get(), &info) != 0) return refuse(system_reason(errno));
  }
  if (S_ISDIR(info.st_mode)) return refuse("it is a directory; name the file in it");
  if (!S_ISREG(info.st_mode)) return refuse("it is not a regular file; copy the trace to a file first");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return refuse("it is empty: its recording never ended; record it again");

  FileBytes result;
  if (size >= kReadBelow && large == Large::kMapped) {
    if (auto mapping = Mapping::of(file.get(), size)) {
      result.bytes_ = mapping->bytes();
      result.mapped_ = std::make_unique<Mapped>(std::move(*mapping), std::move(file));
      result.mapped_->status = info;
      result.mapped_->path = path.string();
      return result;
    }
  }
  try {
    result.owned_ = std::make_unique_for_overwrite<std::byte[]>(size);
  } catch (const std::bad_alloc&) {
    return refuse("memory is out");
  }
  std::size_t got = 0;
  while (got < size) {
    // By its place, as a trace that was made of a foreign file is read again through the same open file.
    const ssize_t n = ::pread(file.get(), result.owned_.get() + got, size - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refuse(system_reason(errno));
    if (n == 0) break;  // it shrank: what is missing is reported as a cut
    got += static_cast<std::size_t>(n);
  }
  result.bytes_ = {result.owned_.get(), got};
  return result;
}

FileBytes FileBytes::view(std::span<const std::byte> bytes) {
  FileBytes result;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 != 0) {
    result.owned_ = std::make_unique_for_overwrite<std::byte[]>(bytes.size());
    std::memcpy(result.owned_.get(), bytes.data(), bytes.size());
    bytes = {result.owned_.get(), bytes.size()};
  }
  result.bytes_ = bytes;
  return result;
}

Status FileBytes::unchanged() const {
  if (!mapped_) return Unit{};
  const struct stat& then = mapped_->status;
  struct stat now {};
  const bool same = !mapped_->mapping.lost() && ::fstat(mapped_->file.get(), &now) == 0 &&
                    (grows_ ? now.st_size >= then.st_size
                            : now.st_size == then.st_size && now.st_mtim.tv_sec == then.st_mtim.tv_sec &&
                                  now.st_mtim.tv_nsec == then.st_mtim.tv_nsec);
  if (same) return Unit{};
  return Error{
      fmt::format("the trace {} changed while it was read, so what was read of it fits nothing: let whoever "
                  "writes to it finish, or read a copy",
                  mapped_->path)};
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      owned_(std::move(other.owned_)),
      mapped_(std::move(other.mapped_)),
      grows_(other.grows_) {}

FileBytes::~FileBytes() = default;

}  // namespace karst::reader
