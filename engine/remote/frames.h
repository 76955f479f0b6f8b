// SPDX-License-Identifier: MIT
// What two karsts say to each other over a pipe, one of them on another machine (docs/viewer-protocol.md, "From
// another machine"). Little-endian:
//
//   u32 size of what follows | u8 kind | u32 number of the question | bytes
//
// Either side may be hostile: sizes are bounded before memory is taken, and what makes no sense ends the connection.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/api/api.h"

namespace karst::engine {

/// What a frame is. The first three are the near side's, that is the page's; the others the far side's.
enum class FrameKind : std::uint8_t {
  kTarget = 1,   ///< what is to be shown, as the path of question_bytes(). The first frame of a connection
  kAsk = 2,      ///< a question: question_bytes()
  kGiveUp = 3,   ///< its answer is not wanted any more
  kReady = 4,    ///< questions may come
  kRefused = 5,  ///< nothing can be shown; the bytes say why
  kHead = 6,     ///< an answer begins: head_bytes()
  kBody = 7,     ///< of its body
  kPacked = 8,   ///< the same: u32 size, and as many bytes packed by zstd
  kEnd = 9,      ///< it is whole
};

inline constexpr std::size_t kMostFrame = 256 << 10;  ///< bytes, of the frame and of what it unpacks to

struct Frame {
  FrameKind kind;
  std::uint32_t question;
  std::string bytes;
};

/// The first line of the far side: "karst-frames OLDEST NEWEST VERSION".
struct Hello {
  std::uint32_t oldest = 0;  ///< protocol of pages that it can answer
  std::uint32_t newest = 0;
  std::string version;  ///< of karst, for people
};
std::string hello_line(const Hello& hello);
/// Nothing: this is no such line.
std::optional<Hello> parse_hello(std::string_view line);
/// Of this karst. Pages and answers go together when their protocols differ by one at most.
Hello own_hello(std::string version);
bool understands(const Hello& far);

/// From a pipe. One thread.
class FrameReader {
 public:
  explicit FrameReader(int descriptor) : descriptor_(descriptor) {}
  /// Waits for it. Nothing: the pipe has ended. Error: this is no frame.
  Result<std::optional<Frame>> next();
  /// Of the far side. Skips what a shell's start-up files print before it, up to 64 KiB. Nothing: the pipe has ended.
  std::optional<Hello> hello();

 private:
  bool read(char* to, std::size_t size);

  const int descriptor_;
};

/// Into a pipe. Any thread; frames are whole. SIGPIPE must be ignored.
class FrameWriter {
 public:
  explicit FrameWriter(int descriptor) : descriptor_(descriptor) {}
  /// False: the other side is gone. `bytes`: at most kMostFrame.
  bool send(FrameKind kind, std::uint32_t question, std::string_view bytes = {});
  /// As kBody or kPacked, in as many frames as it takes.
  bool send_body(std::uint32_t question, std::string_view bytes);
  bool send_raw(std::string_view bytes);

 private:
  const int descriptor_;
  std::mutex mutex_;
};

std::string question_bytes(std::string_view path, const Parameters& parameters);
struct FrameQuestion {
  std::string path;
  Parameters parameters;
};
std::optional<FrameQuestion> parse_question(std::string_view bytes);

/// Status, type and name of `reply`; `goes_on`: it is a stream.
std::string head_bytes(const Reply& reply, bool goes_on);
struct FrameHead {
  Reply reply;  ///< without its body
  bool goes_on = false;
};
/// A type that is not one of our answers' becomes bytes that no browser runs.
std::optional<FrameHead> parse_head(std::string_view bytes);

/// Nothing: it is damaged, or larger than kMostFrame.
std::optional<std::string> unpack_body(std::string_view packed);

}  // namespace karst::engine
