// What a machine at the other end of `karst view ssh://` says, and what a page here may be made to ask there.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "engine/remote/frames.h"
#include "fuzz/require.h"

namespace {

using namespace karst;
using fuzz::require;

void try_frame(const engine::Frame& frame) {
  require(frame.bytes.size() <= engine::kMostFrame, "a frame is no larger than it may be");
  if (const auto question = engine::parse_question(frame.bytes)) {
    const auto again = engine::parse_question(engine::question_bytes(question->path, question->parameters));
    require(again && again->path == question->path && again->parameters == question->parameters,
            "a question is what it is");
  }
  if (const auto head = engine::parse_head(frame.bytes)) {
    require(head->reply.file_name.find('/') == std::string::npos, "a name leads nowhere");
    require(head->reply.type.find_first_of("\r\n") == std::string::npos, "a type is one line");
    require(head->reply.type.find("html") == std::string::npos, "nothing is a page");
    const auto again = engine::parse_head(engine::head_bytes(head->reply, head->goes_on));
    require(again && again->reply.status == head->reply.status && again->reply.type == head->reply.type,
            "a head is what it is");
  }
  if (const auto body = engine::unpack_body(frame.bytes))
    require(body->size() <= engine::kMostFrame, "a body is no larger than a frame");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Descriptor file(::memfd_create("frames", MFD_CLOEXEC));
  require(file && ::write(file.get(), data, size) == static_cast<ssize_t>(size), "a file in memory can be had");
  for (const bool has_hello : {true, false}) {
    ::lseek(file.get(), 0, SEEK_SET);
    engine::FrameReader reader(file.get());
    if (has_hello) {
      const auto hello = reader.hello();
      if (!hello) continue;
      const std::string line = engine::hello_line(*hello);
      const auto again = engine::parse_hello(std::string_view(line).substr(0, line.size() - 1));
      require(again && again->version == hello->version && again->newest == hello->newest, "a hello is what it is");
    }
    while (true) {
      const auto frame = reader.next();
      if (!frame || !*frame) break;
      try_frame(**frame);
    }
  }
  return 0;
}
