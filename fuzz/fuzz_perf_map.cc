// The file that a program keeps for perf, read from its end; compared with the obvious way, from its begin.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "symbols/perf_map.h"

using namespace karst::symbols;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/tmp/karst-fuzz-perf-" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const std::vector<std::uint64_t> addresses = {0, 1, 0x10, 0x14, 0x100, 0x1000, ~std::uint64_t{0} - 1};
  PerfNames names(addresses);
  if (!names.read(path)) std::abort();
  ::unlink(path.c_str());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    // Each address by itself has the name that it has among others.
    const std::vector<std::uint64_t> one = {addresses[i]};
    PerfNames alone(one);
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    if (!alone.read(path) || alone.of(0) != names.of(i)) std::abort();
  }
  ::unlink(path.c_str());
  return 0;
}
