// SPDX-License-Identifier: MIT
#include "export/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>

namespace karst::exporting {

struct GzipWriter::Stream {
  z_stream zlib{};
  std::array<char, 64 << 10> packed;
};

GzipWriter::GzipWriter(Output& output) : output_(output), stream_(std::make_unique<Stream>()) {
  constexpr int kWindow = 15, kGzip = 16, kMemory = 8;
  if (deflateInit2(&stream_->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindow + kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::bad_alloc();
}

GzipWriter::~GzipWriter() { deflateEnd(&stream_->zlib); }

void GzipWriter::append(std::string_view bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30U;  // zlib counts in 32 bits
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMost))) pack(bytes.substr(0, kMost), false);
}

void GzipWriter::finish() { pack({}, true); }

void GzipWriter::pack(std::string_view bytes, bool is_last) {
  z_stream& zlib = stream_->zlib;
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  do {
    zlib.next_out = reinterpret_cast<Bytef*>(stream_->packed.data());
    zlib.avail_out = static_cast<uInt>(stream_->packed.size());
    deflate(&zlib, is_last ? Z_FINISH : Z_NO_FLUSH);
    output_.append(std::string_view(stream_->packed.data(), stream_->packed.size() - zlib.avail_out));
  } while (zlib.avail_out == 0);
}

}  // namespace karst::exporting
