// /proc/PID/maps and status: what was read, written as the kernel does, reads as the same.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_maps.h"
#include "base/process_status.h"
#include "fuzz/require.h"

using karst::fuzz::require;

namespace {

std::string written(const std::vector<karst::Mapping>& all) {
  std::string text;
  for (const karst::Mapping& m : all)
    text += fmt::format("{:08x}-{:08x} {} {:08x} {:02x}:{:02x} {} {}\n", m.begin, m.end, m.rights, m.offset,
                        m.device_major, m.device_minor, m.inode, m.path);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto all = karst::parse_maps(text);
  for (const karst::Mapping& m : all) {
    require(m.begin < m.end && m.rights.size() == 4, "a mapping makes sense");
    require(m.path.find('\n') == std::string::npos && !m.path.starts_with(' '), "a path is of its line");
  }
  require(written(karst::parse_maps(written(all))) == written(all), "a line reads as it is written");

  const karst::ProcessStatus status(text);
  for (const char* name : {"Name", "Uid", "Tgid", ""}) {
    require(status.field(name).find('\n') == std::string_view::npos, "a field is of its line");
    for (const int base : {10, 16}) {
      const auto numbers = status.numbers(name, base);
      require(status.number(name, base).has_value() != numbers.empty(), "the first of all numbers");
    }
  }
  return 0;
}
