// SPDX-License-Identifier: MIT
// A line for each entry, in which \n and \\ stand for a newline and a backslash.
#include "cli/input/history_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>

namespace karst::cli {
namespace {

constexpr const char* kSuffix = ".history";
constexpr std::size_t kMostEntries = 1000;
constexpr std::size_t kLongestEntry = 16 << 10;
constexpr std::size_t kMostBytes = kMostEntries * kLongestEntry;

std::string line_of(std::string_view entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\\')
      line += "\\\\";
    else if (c == '\n')
      line += "\\n";
    else
      line += c;
  }
  return line + "\n";
}

std::string entry_of(std::string_view line) {
  std::string entry;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool is_escape = line[at] == '\\' && at + 1 < line.size();
    if (is_escape) ++at;
    entry += is_escape && line[at] == 'n' ? '\n' : line[at];
  }
  return entry;
}

std::string all_of(int fd, std::size_t size) {
  std::string text(std::min(size, kMostBytes), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(fd, text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace

HistoryFile::HistoryFile(const std::string& name)
    : directory_(CacheDirectory::state_of_user(), kSuffix, 4 * kMostBytes) {
  if (directory_.on()) file_ = directory_.directory() / (name + kSuffix);
}

std::vector<std::string> HistoryFile::entries() const {
  struct stat status {};
  const Descriptor file = CacheDirectory::open(file_, O_RDONLY, status);
  std::vector<std::string> entries;
  if (!file) return entries;
  const std::string text = all_of(file.get(), static_cast<std::size_t>(status.st_size));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    entries.push_back(entry_of(std::string_view(text).substr(at, end - at)));
    at = end + 1;
  }
  return entries;
}

void HistoryFile::add(const std::string& entry) const {
  if (entry.size() > kLongestEntry) return;
  std::vector<std::string> kept = entries();
  if (!kept.empty() && kept.back() == entry) return;
  kept.push_back(entry);
  std::string text;
  for (std::size_t at = kept.size() - std::min(kept.size(), kMostEntries); at < kept.size(); ++at)
    text += line_of(kept[at]);
  directory_.save(file_, [&text](int fd) { return write_whole(fd, std::as_bytes(std::span(text))); });
}

}  // namespace karst::cli
