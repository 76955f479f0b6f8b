// Lists of functions: globs as users and programs write them, and the note by which a module carries them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "choice/function_lists.h"
#include "format/filter_list.h"
#include "fuzz/require.h"

namespace {

using namespace karst;

void try_globs(std::string_view text) {
  std::vector<std::string> globs;
  static_cast<void>(format::parse_glob_list(text, globs));
  static_cast<void>(format::parse_min_instructions(text));
  const auto set = choice::GlobSet::compile(globs);
  if (!set) {
    fuzz::require(!set.error().message.empty(), "an error says something");
    return;
  }
  reader::Function function;
  function.name = "std::vector<int>::push_back(int)";
  function.file = "/usr/include/c++/12/vector";
  static_cast<void>(set->matches(function));
  fuzz::require(!globs.empty() || !set->matches(function), "no glob matches nothing");
}

void try_module(const std::uint8_t* data, std::size_t size) {
  const int fd = ::memfd_create("module", MFD_CLOEXEC);
  if (fd >= 0 && ::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size))
    static_cast<void>(choice::lists_in("/proc/self/fd/" + std::to_string(fd)));
  if (fd >= 0) ::close(fd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_globs({reinterpret_cast<const char*>(data), size});
  if (size > 4 && data[0] == 0x7f) try_module(data, size);
  return 0;
}
