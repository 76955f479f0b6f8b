// KARST_OPTIONS as the runtime reads it: any text, set by whoever starts the program. Built with the runtime's own
// parser; what it would say goes nowhere.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "format/option_text.h"
#include "fuzz/require.h"
#include "runtime/system/message.h"
#include "runtime/system/options.h"

namespace karst::runtime {

Message::Message() = default;
Message::~Message() = default;
Message& Message::text(const char*) {
  line_[0] = '\0';
  size_ = 0;
  return *this;
}
Message& Message::text(const char*, std::uint64_t) { return *this; }
Message& Message::number(std::uint64_t) { return *this; }

}  // namespace karst::runtime

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using karst::fuzz::require;
  using namespace karst::runtime;
  std::string entry = "KARST_OPTIONS=" + std::string(reinterpret_cast<const char*>(data), size);
  entry.resize(std::strlen(entry.c_str()));
  std::string environment_entry = entry;  // it may be written to
  char* environment[] = {environment_entry.data(), nullptr};
  const Options options = Options::from(environment);
  require(options.given, "the variable was found");
  require(std::memchr(options.session.name, 0, sizeof options.session.name) != nullptr, "the session's name ends");
  require(std::memchr(options.snapshots, 0, sizeof options.snapshots) != nullptr, "the directory's name ends");
  std::string again = "KARST_OPTIONS=" + karst::format::options_text(options);
  const std::string written = again;
  char* environment_of_written[] = {again.data(), nullptr};
  const Options same = Options::from(environment_of_written);
  require("KARST_OPTIONS=" + karst::format::options_text(same) == written, "what is written is read as the same");
  char kept[256];
  for (const std::size_t room : {std::size_t{1}, std::size_t{16}, sizeof kept}) {
    copy_without_session(kept, room, entry.c_str() + std::strlen("KARST_OPTIONS="));
    require(std::memchr(kept, 0, room) != nullptr, "what is kept ends");
    require(std::strncmp(kept, "session=", 8) != 0, "the session is not kept");
  }
  return 0;
}
