// SPDX-License-Identifier: MIT
#include "patch/table_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <ctime>
#include <utility>

#include "format/checksum.h"
#include "format/patch_table.h"
#include "sandbox/read_whole.h"

namespace karst::patch {

namespace fs = std::filesystem;

namespace {

/// What a kept file begins with; the key and the answer follow.
struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t checksum;  ///< of key and answer
  std::uint64_t key_size;
  std::uint64_t answer_size;
};
static_assert(sizeof(Head) == 32);
constexpr char kMagic[8] = {'K', 'P', 'A', 'T', 'C', 'H', 'E', 'S'};

/// Times of change are as fine as this, on any file system that there is.
constexpr std::int64_t kFinestSeconds = 2;

using Identity = std::array<std::int64_t, 7>;

std::optional<Identity> identity_of(const struct stat& s) {
  if (!S_ISREG(s.st_mode)) return std::nullopt;
  return Identity{static_cast<std::int64_t>(s.st_dev),
                  static_cast<std::int64_t>(s.st_ino),
                  s.st_size,
                  s.st_mtim.tv_sec,
                  s.st_mtim.tv_nsec,
                  s.st_ctim.tv_sec,
                  s.st_ctim.tv_nsec};
}

std::string bytes_of(const Identity& identity) {
  return {reinterpret_cast<const char*>(identity.data()), sizeof identity};
}

/// Another build of Karst may find other places. Empty: it is not known.
const std::string& this_karst() {
  static const std::string known = [] {
    struct stat status {};
    const auto identity = ::stat("/proc/self/exe", &status) == 0 ? identity_of(status) : std::nullopt;
    return identity ? bytes_of(*identity) : std::string();
  }();
  return known;
}

std::uint32_t checksum_of(std::string_view key, std::span<const std::byte> answer) {
  return format::crc32c(answer.data(), answer.size(), format::crc32c(key.data(), key.size()));
}

/// Nobody else may put something there.
bool is_ours_alone(const struct stat& s) { return s.st_uid == ::geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0; }

}  // namespace

TableCache::TableCache(fs::path directory, std::uint64_t limit) : files_(std::move(directory), ".patches", limit) {}

TableCache TableCache::of_user() {
  fs::path directory = CacheDirectory::of_user("patches");
  return directory.empty() ? TableCache() : TableCache(std::move(directory));
}

TableCache::Key TableCache::key_of(int descriptor, std::string_view wanted) const {
  struct stat status {};
  if (!files_.on() || this_karst().empty() || ::fstat(descriptor, &status) != 0) return {};
  const auto identity = identity_of(status);
  timespec now{};
  if (!identity || ::clock_gettime(CLOCK_REALTIME, &now) != 0 || status.st_ctim.tv_sec > now.tv_sec - kFinestSeconds)
    return {};
  Key key;
  key.file = bytes_of(*identity);
  key.text = key.file + this_karst();
  key.text += wanted;
  const std::uint32_t rest = format::crc32c(key.text.data(), key.text.size());
  key.file.append(reinterpret_cast<const char*>(&rest), sizeof rest);
  return key;
}

fs::path TableCache::file_of(const Key& key) const { return key.empty() ? fs::path() : files_.file_of(key.file); }

std::optional<std::vector<std::byte>> TableCache::find(const Key& key) const {
  struct stat status {};
  if (key.empty() || ::stat(files_.directory().c_str(), &status) != 0 || !is_ours_alone(status)) return std::nullopt;
  const Descriptor file = CacheDirectory::open(file_of(key), O_RDONLY, status);
  if (file.get() < 0 || !is_ours_alone(status) || status.st_nlink != 1) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  Head head{};
  // Reads, not a mapping: the file may be cut while it is in use.
  if (size > files_.limit() || !sandbox::read_whole(file.get(), &head, sizeof head) ||
      std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.version != format::kPatchTableVersion ||
      head.key_size != key.text.size() || size - sizeof head < head.key_size ||
      size - sizeof head - head.key_size != head.answer_size)
    return std::nullopt;
  std::string text(key.text.size(), '\0');
  if (!sandbox::read_whole(file.get(), text.data(), text.size()) || text != key.text) return std::nullopt;
  std::vector<std::byte> answer(head.answer_size);
  if (!sandbox::read_whole(file.get(), answer.data(), answer.size()) || checksum_of(text, answer) != head.checksum)
    return std::nullopt;
  CacheDirectory::used(file.get());
  return answer;
}

bool TableCache::save(const Key& key, std::span<const std::byte> answer) const {
  if (key.empty() || answer.size() > files_.limit() / 2) return false;
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = format::kPatchTableVersion;
  head.key_size = key.text.size();
  head.answer_size = answer.size();
  head.checksum = checksum_of(key.text, answer);
  return files_.save(file_of(key), [&](int fd) {
    return write_whole(fd, std::as_bytes(std::span(&head, 1))) && write_whole(fd, std::as_bytes(std::span(key.text))) &&
           write_whole(fd, answer);
  });
}

}  // namespace karst::patch
