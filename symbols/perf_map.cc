#include "symbols/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>

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

Result<PerfMap> PerfMap::load(const std::filesystem::path& path) {
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
    text.resize(static_cast<std::size_t>(status.st_size));
    std::size_t got = 0;
    while (got < text.size()) {
      const ssize_t n = ::read(fd, text.data() + got, text.size() - got);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    text.resize(got);
  }
  ::close(fd);
  if (why != nullptr) return refuse(why);
  return parse(std::move(text));
}

PerfMap PerfMap::parse(std::string text) {
  PerfMap made;
  made.text_ = std::move(text);
  std::map<std::uint64_t, Row> rows;  // by begin, disjoint
  const std::string_view all = made.text_;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    std::string_view line = all.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    Row row;
    std::uint64_t size = 0;
    if (!take_hex(line, row.begin) || !take_hex(line, size) || line.empty() || size == 0 ||
        __builtin_add_overflow(row.begin, size, &row.end)) {
      continue;
    }
    row.name = static_cast<std::uint32_t>(line.data() - all.data());
    row.size = static_cast<std::uint32_t>(line.size());
    // What lies there already is older: it keeps what is left of it on both sides.
    auto old = rows.upper_bound(row.begin);
    if (old != rows.begin()) --old;
    while (old != rows.end() && old->second.begin < row.end) {
      const Row was = old->second;
      if (was.end <= row.begin) {
        ++old;
        continue;
      }
      old = rows.erase(old);
      if (was.begin < row.begin) rows[was.begin] = {was.begin, row.begin, was.name, was.size};
      if (was.end > row.end) rows[row.end] = {row.end, was.end, was.name, was.size};
    }
    rows[row.begin] = row;
  }
  made.rows_.reserve(rows.size());
  for (const auto& [begin, row] : rows) made.rows_.push_back(row);
  return made;
}

std::optional<PerfMap::Piece> PerfMap::lookup(std::uint64_t address) const {
  auto after = std::upper_bound(rows_.begin(), rows_.end(), address,
                                [](std::uint64_t a, const Row& row) { return a < row.begin; });
  if (after == rows_.begin() || address >= std::prev(after)->end) return std::nullopt;
  const Row& row = *std::prev(after);
  return Piece{row.begin, row.end, std::string_view(text_).substr(row.name, row.size)};
}

}  // namespace karst::symbols
