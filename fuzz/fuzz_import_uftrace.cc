// The files of an uftrace directory, read by import/uftrace.cc: the input is all of them, a zero byte between each.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/descriptor.h"
#include "fuzz/imported.h"

using namespace karst;

namespace {

/// A directory for all inputs.
int directory() {
  static const Descriptor opened = [] {
    char path[] = "/tmp/karst-fuzz-uftrace-XXXXXX";
    fuzz::require(mkdtemp(path) != nullptr, "a directory can be made");
    return Descriptor(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }();
  return opened.get();
}

void write_file(const char* name, std::string_view bytes) {
  const Descriptor file(openat(directory(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  fuzz::require(write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "it is written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  std::string info("Ftrace!\0\x04\0\0\0\x28\0\x01\x02\x63\x03", 18);
  info.resize(40);
  write_file("info", info);
  for (const char* name : {"task.txt", "sid-0.map", "a.sym"}) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    write_file(name, rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  write_file("1.dat", rest);
  fuzz::require_sound_import(importing::import_uftrace(directory()));
  return 0;
}
