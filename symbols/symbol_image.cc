// SPDX-License-Identifier: MIT
#include "symbols/symbol_image.h"

#include <algorithm>
#include <cstring>

#include "format/checksum.h"

namespace karst::symbols {

std::uint32_t ImageBuilder::add_text(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  if (text.empty()) return 0;
  if (text.size() >= kMaxHeap - heap_.size()) full_ = true;
  if (full_) return 0;  // finish() will refuse
  auto offset = static_cast<std::uint32_t>(heap_.size());
  heap_.append(text);
  heap_.push_back('\0');
  return offset;
}

std::uint32_t ImageBuilder::intern(std::string_view text) {
  if (text.empty()) return 0;
  auto [it, fresh] = interned_.try_emplace(std::string(text), 0);
  if (fresh) it->second = add_text(text);
  return it->second;
}

Result<Image> ImageBuilder::finish(std::string_view build_id, std::uint32_t flags) const {
  if (full_) return Error{"its function names take over 2 GiB of memory, which Karst does not hold"};
  ImageHeader header{};
  std::memcpy(header.magic, kImageMagic, sizeof header.magic);
  header.version = kImageVersion;
  header.flags = flags;
  header.row_count = rows_.size();
  header.inlined_count = static_cast<std::uint32_t>(inlined_.size());  // bounded by who adds them
  header.heap_size = heap_.size();
  if (!build_id.empty() && build_id.size() <= sizeof header.build_id) {
    header.build_id_size = static_cast<std::uint32_t>(build_id.size());
    std::memcpy(header.build_id, build_id.data(), build_id.size());
  }
  const std::size_t rows_size = rows_.size() * sizeof(ImageRow);
  const std::size_t inlined_size = inlined_.size() * sizeof(ImageInlined);
  const std::size_t tables_size = rows_size + inlined_size;
  Image image;
  image.size = sizeof header + tables_size + heap_.size();
  image.bytes = std::make_unique_for_overwrite<std::byte[]>(image.size);
  std::byte* payload = image.bytes.get() + sizeof header;
  if (rows_size != 0) std::memcpy(payload, rows_.data(), rows_size);
  if (inlined_size != 0) std::memcpy(payload + rows_size, inlined_.data(), inlined_size);
  std::memcpy(payload + tables_size, heap_.data(), heap_.size());
  header.payload_crc = format::crc32c(payload, tables_size + heap_.size());
  header.header_crc = format::crc32c(&header, offsetof(ImageHeader, header_crc));
  std::memcpy(image.bytes.get(), &header, sizeof header);
  return image;
}

Result<ImageHeader> check_image(const std::byte* bytes, std::size_t size) {
  ImageHeader header;
  if (size < sizeof header) return Error{"symbol table is cut short"};
  std::memcpy(&header, bytes, sizeof header);
  if (std::memcmp(header.magic, kImageMagic, sizeof header.magic) != 0) return Error{"not a symbol table"};
  if (header.version != kImageVersion) return Error{"symbol table of another version of Karst"};
  if (header.header_crc != format::crc32c(&header, offsetof(ImageHeader, header_crc))) {
    return Error{"symbol table has a damaged header"};
  }
  std::size_t rest = size - sizeof header;
  if (header.build_id_size > sizeof header.build_id || header.row_count > rest / sizeof(ImageRow) ||
      header.inlined_count > (rest - header.row_count * sizeof(ImageRow)) / sizeof(ImageInlined) ||
      header.heap_size != rest - header.row_count * sizeof(ImageRow) - header.inlined_count * sizeof(ImageInlined) ||
      header.heap_size == 0 || header.heap_size > kMaxHeap) {
    return Error{"symbol table has impossible sizes"};
  }
  const std::byte* payload = bytes + sizeof header;
  if (header.payload_crc != format::crc32c(payload, rest)) return Error{"symbol table is damaged"};
  if (bytes[size - 1] != std::byte{0}) return Error{"symbol table has an open text"};
  std::uint64_t last_end = 0;
  for (std::uint64_t i = 0; i < header.row_count; ++i) {
    ImageRow row;
    std::memcpy(&row, payload + i * sizeof row, sizeof row);
    if (row.begin < last_end || row.end <= row.begin) return Error{"symbol table is out of order"};
    last_end = row.end;
    if (std::max({row.name, row.link_name, row.file}) >= header.heap_size) {
      return Error{"symbol table names a text outside of it"};
    }
    if (std::uint64_t{row.inlined_first} + row.inlined_count > header.inlined_count) {
      return Error{"symbol table names inlined functions outside of it"};
    }
  }
  payload += header.row_count * sizeof(ImageRow);
  for (std::uint64_t i = 0; i < header.inlined_count; ++i) {
    ImageInlined inlined;
    std::memcpy(&inlined, payload + i * sizeof inlined, sizeof inlined);
    if (std::max({inlined.name, inlined.file, inlined.call_file}) >= header.heap_size || inlined.depth == 0) {
      return Error{"symbol table has an inlined function that cannot be"};
    }
  }
  return header;
}

}  // namespace karst::symbols
