// The runtime's only voice: whole lines on stderr, said once each, never more than a few in a process's life.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// Builds a line in a small buffer (cut at 400 bytes) and writes it to descriptor 2 with one write. Any thread, any
/// context.
class Message {
 public:
  Message();
  ~Message();  ///< writes the line
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  Message& text(const char* s);
  Message& text(const char* s, std::uint64_t n);
  Message& number(std::uint64_t n);

 private:
  char line_[400];
  unsigned size_ = 0;
};

}  // namespace karst::runtime
