// karst-clang's change of the objects that clang writes: whatever the file is, it stays as it is or becomes another ELF
// file, and nothing else is left behind. The seeds are two functions of ours, compiled by clang 14 (with
// -ffunction-sections) and 19 with -Xclang -fxray-instrument -Xclang -fxray-instruction-threshold=1.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/require.h"
#include "toolchain/clang_objects.h"

namespace {

using karst::fuzz::require;

/// Removed at the end.
class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "karst-fuzz-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr, "a directory can be made");
    path_ = name;
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Directory directory;
  const std::string file = directory.path() / "a.o";
  const std::string before(reinterpret_cast<const char*>(data), size);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << before;
  const bool done = karst::toolchain::shorten_sled_tables(file).ok();
  std::ifstream in(file, std::ios::binary);
  const std::string after((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  constexpr const char* kElf = "\177ELF";
  require(after == before || (done && after.starts_with(kElf)), "the file stays or is an ELF file");
  require(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1, "nothing is left beside it");
  return 0;
}
