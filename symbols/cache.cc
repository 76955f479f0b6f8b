// SPDX-License-Identifier: MIT
#include "symbols/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "sandbox/read_whole.h"

namespace karst::symbols {

namespace fs = std::filesystem;

Cache::Cache(fs::path directory, std::uint64_t limit) : files_(std::move(directory), ".symbols", limit) {}

Cache Cache::of_user() {
  fs::path directory = CacheDirectory::of_user();
  return directory.empty() ? Cache() : Cache(std::move(directory));
}

fs::path Cache::file_of(std::string_view build_id) const { return files_.file_of(build_id); }

std::optional<SymbolTable> Cache::find(std::string_view build_id) const {
  struct stat status {};
  const Descriptor file = CacheDirectory::open(file_of(build_id), O_RDONLY, status);
  if (file.get() < 0 || static_cast<std::uint64_t>(status.st_size) > files_.limit()) return std::nullopt;
  const auto size = static_cast<std::size_t>(status.st_size);
  // One read, not a mapping: the file may be cut while it is in use.
  auto image = std::make_unique_for_overwrite<std::byte[]>(size);
  if (!sandbox::read_whole(file.get(), image.get(), size)) return std::nullopt;
  auto table = SymbolTable::from_image(std::move(image), size);
  if (!table || table->build_id() != build_id) return std::nullopt;
  CacheDirectory::used(file.get());
  return std::move(*table);
}

bool Cache::save(const SymbolTable& table) const {
  if (!table.has_debug_info() || !table.debug_incomplete().empty() || table.image().size() > files_.limit()) {
    return false;
  }
  return files_.save(file_of(table.build_id()), [&](int fd) { return write_whole(fd, table.image()); });
}

Result<SymbolTable> Cache::load(const fs::path& module, std::string_view build_id,
                                const binary::DebugSearch& search) const {
  if (auto table = find(build_id)) return std::move(*table);
  auto table = SymbolTable::load(module, build_id, search);
  if (table) save(*table);
  return table;
}

}  // namespace karst::symbols
