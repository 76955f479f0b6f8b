// SPDX-License-Identifier: MIT
// Which file a module without a build-id was mapped from: what the kernel says of it, as the module was registered.
//
// A build-id names contents. Without one, a file that has been rebuilt, replaced, moved or written to since is told by
// this, and gives no names. It lies where a build-id would (ArenaModule::build_id, ModuleRecord::build_id), which
// kModuleByFile says.
#ifndef KARST_FORMAT_FILE_IDENTITY_H
#define KARST_FORMAT_FILE_IDENTITY_H

#include <cstddef>
#include <cstdint>

namespace karst::format {

/// Stored without the padding: kFileIdentitySize bytes.
struct FileIdentity {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;         ///< 0: not known, as another file was at the path already
  std::uint64_t modified_ns = 0;  ///< since 1970, when its contents were last changed; without a size: at the latest
  std::uint32_t device = 0;       ///< major number * 2^20 + minor number

  bool operator==(const FileIdentity&) const = default;
};
inline constexpr std::size_t kFileIdentitySize = 28;
static_assert(offsetof(FileIdentity, device) == kFileIdentitySize - sizeof(std::uint32_t));

/// As `struct stat` has the parts.
template <typename Status>
FileIdentity file_identity(const Status& status) {
  // glibc's dev_t: the lower 12 bits of the major number from bit 8 on, the lower 8 bits of the minor one below.
  const std::uint64_t dev = status.st_dev;
  const std::uint64_t major = (dev >> 8 & 0xfff) | (dev >> 32 & ~std::uint64_t{0xfff});
  const std::uint64_t minor = (dev & 0xff) | (dev >> 12 & ~std::uint64_t{0xff});
  return {static_cast<std::uint64_t>(status.st_ino), static_cast<std::uint64_t>(status.st_size),
          static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
              static_cast<std::uint64_t>(status.st_mtim.tv_nsec),
          static_cast<std::uint32_t>(major << 20 | (minor & 0xfffff))};
}

}  // namespace karst::format

#endif
