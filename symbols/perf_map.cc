#include "symbols/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

namespace karst::symbols {
namespace {

/// Takes a hexadecimal number and the blanks behind it off the front of a line.
bool take_hex(std::string_view& line, std::uint64_t& value) {
  if (line.starts_with("0x")) line.remove_prefix(2);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  if (error != std::errc() || end == line.data()) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (!line.starts_with(' ') && !line.starts_with('\t')) return false;
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return true;
}

}  // namespace

std::filesystem::path PerfMap::path_of(std::uint32_t pid) { return "/tmp/perf-" + std::to_string(pid) + ".map"; }

Status PerfMap::read(const std::filesystem::path& path) {
  const auto refuse = [&path](std::string_view why) {
    return Error{"cannot read the names of generated code in " + path.string() + ": " + std::string(why)};
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return refuse(std::strerror(errno));
  struct stat status {};
  std::string text;
  const char* why = nullptr;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    why = "not a regular file";
  } else if (status.st_uid != ::geteuid() && ::geteuid() != 0) {
    why = "it belongs to another user";
  } else if (static_cast<std::uintmax_t>(status.st_size) > kMaxFile) {
    why = "it is larger than 1 GiB";
  } else {
    const auto size = static_cast<std::uintmax_t>(status.st_size);
    if (status.st_dev != device_ || status.st_ino != inode_ || size < seen_) *this = PerfMap();
    device_ = status.st_dev;
    inode_ = status.st_ino;
    if (std::exchange(seen_, size) != size) text.resize(size - read_);
    std::size_t got = 0;
    while (got < text.size()) {
      const ssize_t n = ::pread(fd, text.data() + got, text.size() - got, static_cast<off_t>(read_ + got));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    text.resize(got);
  }
  ::close(fd);
  if (why != nullptr) return refuse(why);
  append(text);
  read_ += text.rfind('\n') + 1;  // of none, 0: a line that is not whole yet comes again
  return Unit{};
}

void PerfMap::append(std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    Row row;
    if (!take_hex(line, begin) || !take_hex(line, size) || line.empty() || size == 0 ||
        __builtin_add_overflow(begin, size, &row.end)) {
      continue;
    }
    row.name = names_.size();
    row.size = line.size();
    names_ += line;
    put(begin, row);
  }
}

void PerfMap::put(std::uint64_t begin, const Row& row) {
  // What lies there already is older: it keeps what is left of it on both sides.
  auto old = rows_.upper_bound(begin);
  if (old != rows_.begin()) --old;
  while (old != rows_.end() && old->first < row.end) {
    const std::uint64_t was_begin = old->first;
    const Row was = old->second;
    if (was.end <= begin) {
      ++old;
      continue;
    }
    old = rows_.erase(old);
    if (was_begin < begin) rows_[was_begin] = {begin, was.name, was.size};
    if (was.end > row.end) rows_[row.end] = was;
  }
  rows_[begin] = row;
}

std::optional<PerfMap::Piece> PerfMap::lookup(std::uint64_t address) const {
  auto after = rows_.upper_bound(address);
  if (after == rows_.begin()) return std::nullopt;
  const auto& [begin, row] = *std::prev(after);
  if (address >= row.end) return std::nullopt;
  return Piece{begin, row.end, std::string_view(names_).substr(row.name, row.size)};
}

}  // namespace karst::symbols
