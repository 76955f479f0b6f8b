// SPDX-License-Identifier: MIT
#include "symbols/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/descriptor.h"
#include "sandbox/sandbox.h"

namespace karst::symbols {
namespace {

constexpr std::size_t kStep = std::size_t{256} << 10;

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

bool read_at(int fd, char* to, std::size_t size, std::uint64_t at) {
  while (size != 0) {
    const ssize_t n = ::pread(fd, to, size, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    at += static_cast<std::uint64_t>(n);
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

std::filesystem::path perf_map_of(std::uint32_t pid) { return "/tmp/perf-" + std::to_string(pid) + ".map"; }

PerfNames::PerfNames(std::span<const std::uint64_t> addresses, const PerfMapLimits& limits)
    : addresses_(addresses),
      limits_(limits),
      left_(addresses.size()),
      next_(addresses.size() + 1),
      name_(addresses.size()) {
  std::iota(next_.begin(), next_.end(), std::size_t{0});
}

Status PerfNames::read(const std::filesystem::path& path) {
  const auto refuse = [&path](std::string_view why) {
    return Error{"cannot read the names of generated code in " + path.string() + ": " + std::string(why)};
  };
  const Descriptor file(sandbox::open_regular(path.c_str(), O_NOFOLLOW));
  if (!file) return refuse(file.get() == -EINVAL ? "not a regular file" : std::strerror(-file.get()));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || status.st_uid != ::geteuid()) return refuse("it belongs to another user");
  auto at = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t first = at > limits_.file_bytes ? at - limits_.file_bytes : 0;
  std::string text;       // the rest of what was read: the end of a line whose begin was not
  bool too_long = false;  // so is the line that it is the end of
  const auto take_line = [&](std::size_t begin) {
    if (!std::exchange(too_long, false)) take(std::string_view(text).substr(begin));
  };
  while (at > first && left_ != 0) {
    const std::uint64_t step = std::min<std::uint64_t>(kStep, at - first);
    text.insert(0, step, '\0');
    at -= step;
    if (!read_at(file.get(), text.data(), step, at)) {
      text.clear();  // it became shorter: what lies before is older, and not what it was
      break;
    }
    for (std::size_t end = 0; left_ != 0 && (end = text.rfind('\n')) != std::string::npos; text.resize(end))
      take_line(end + 1);
    if (text.size() > limits_.line_bytes) {
      too_long = true;
      text.clear();
    }
  }
  if (at == 0 && left_ != 0) take_line(0);
  if (left_ != 0 && first != 0 && left_out_.empty())
    left_out_ = "of " + path.string() + " the first " + std::to_string(first) +
                " bytes were not read: it is larger than " + std::to_string(limits_.file_bytes);
  return Unit{};
}

std::size_t PerfNames::next_free(std::size_t address) {
  while (next_[address] != address) {
    next_[address] = next_[next_[address]];
    address = next_[address];
  }
  return address;
}

void PerfNames::take(std::string_view line) {
  if (line.size() > limits_.line_bytes) return;
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t end = 0;
  if (!take_hex(line, begin) || !take_hex(line, size) || line.empty() || size == 0 ||
      __builtin_add_overflow(begin, size, &end)) {
    return;
  }
  const auto from = std::lower_bound(addresses_.begin(), addresses_.end(), begin);
  std::size_t i = next_free(static_cast<std::size_t>(from - addresses_.begin()));
  if (i == addresses_.size() || addresses_[i] >= end) return;
  if (line.size() > limits_.name_bytes - name_bytes_) {
    left_out_ = "the names of generated code take more than " + std::to_string(limits_.name_bytes) + " bytes";
    left_ = 0;
    return;
  }
  name_bytes_ += line.size();
  names_.emplace_back(line);
  for (; i != addresses_.size() && addresses_[i] < end; i = next_free(i)) {
    name_[i] = static_cast<std::uint32_t>(names_.size());
    next_[i] = i + 1;
    --left_;
  }
}

std::string_view PerfNames::of(std::size_t address) const {
  const std::uint32_t name = name_[address];
  return name == 0 ? std::string_view() : names_[name - 1];
}

}  // namespace karst::symbols
