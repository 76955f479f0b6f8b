// A module's file: ELF, DWARF, notes, compressed sections, as the sandbox reads it. Here without the sandbox, which
// would hide what breaks.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "binary/instructions.h"
#include "symbols/symbol_table.h"

using namespace karst::symbols;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int fd = ::memfd_create("module", MFD_CLOEXEC);
  if (fd < 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (const auto table = SymbolTable::load(path, "")) {
    const auto file = binary::CodeFile::open(path);
    for (std::size_t i = 0; file && i < table->size() && i < 100; ++i)
      static_cast<void>(binary::shape_of(file->code(table->at(i).begin, table->at(i).end)));
  }
  ::close(fd);
  return 0;
}
