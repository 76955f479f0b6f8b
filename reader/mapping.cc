// SPDX-License-Identifier: MIT
#include "reader/mapping.h"

#include <sys/mman.h>

namespace karst::reader {

std::optional<Mapping> Mapping::of(int fd, std::size_t size) {
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED) return std::nullopt;
  return Mapping({static_cast<const std::byte*>(at), size});
}

Mapping::Mapping(std::span<const std::byte> bytes)
    : bytes_(bytes), guard_(std::make_unique<BusErrorGuard>(bytes.data(), bytes.size())) {}

Mapping::~Mapping() {
  if (!guard_) return;
  guard_.reset();
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace karst::reader
