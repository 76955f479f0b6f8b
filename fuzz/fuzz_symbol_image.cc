// A module's symbol table as the cache has it, and as the process answers that read a hostile module. The header is
// made right, so that what lies behind it is reached.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "format/checksum.h"
#include "symbols/symbol_image.h"
#include "symbols/symbol_table.h"

using namespace karst::symbols;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  ImageHeader header{};
  std::memcpy(header.magic, kImageMagic, sizeof header.magic);
  header.version = kImageVersion;
  header.flags = data[0];
  header.build_id_size = data[1];
  header.row_count = data[2];
  header.inlined_count = data[3];
  data += 4;
  size -= 4;
  header.heap_size = size - header.row_count * sizeof(ImageRow) - header.inlined_count * sizeof(ImageInlined);
  header.payload_crc = karst::format::crc32c(data, size);
  header.header_crc = karst::format::crc32c(&header, offsetof(ImageHeader, header_crc));
  auto image = std::make_unique<std::byte[]>(sizeof header + size);
  std::memcpy(image.get(), &header, sizeof header);
  std::memcpy(image.get() + sizeof header, data, size);
  const auto table = SymbolTable::from_image(std::move(image), sizeof header + size);
  if (!table) return 0;
  std::size_t bytes = table->build_id().size();
  for (std::size_t i = 0; i < table->size(); ++i) {
    const Symbol symbol = table->at(i);
    bytes += symbol.name.size() + symbol.link_name.size() + symbol.file.size();
    for (std::size_t k = 0; k < symbol.inlined_count; ++k) {
      const InlinedSymbol inlined = table->inlined_at(symbol.inlined_first + k);
      bytes += inlined.name.size() + inlined.file.size() + inlined.call_file.size();
    }
    const auto found = table->lookup(symbol.end - 1);
    if (!found || found->begin != symbol.begin) std::abort();  // rows are sorted and disjoint
  }
  return bytes == ~std::size_t{0} ? 1 : 0;
}
