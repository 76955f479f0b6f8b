// SPDX-License-Identifier: MIT
// The runtime's only voice: whole lines on stderr, said once each, never more than a few in a process's life.
//
// A program may close descriptor 2 and have a file or a connection of its own there. So lines go to the file that was
// there at the start, or nowhere.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// At start: what descriptor 2 is now is stderr, if there is one. Never called: whatever it is then.
void keep_stderr();
/// At start: how many lines could not be written is told here, in an arena, by the process whose own that is.
void tell_dropped_messages(std::uint64_t& count);

/// Builds a line in a small buffer (cut at 400 bytes) and writes it to stderr with one write that neither waits nor
/// raises a signal; else the line is counted. Any thread, any context.
class Message {
 public:
  Message();
  ~Message();  ///< writes the line
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  Message& text(const char* s);
  Message& text(const char* s, std::uint64_t n);
  Message& number(std::uint64_t n);
  Message& hex(std::uint64_t n);  ///< without 0x

 private:
  char line_[400];
  unsigned size_ = 0;
};

}  // namespace karst::runtime
