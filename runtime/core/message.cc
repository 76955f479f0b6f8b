#include "runtime/core/message.h"

#include "runtime/core/syscalls.h"

namespace karst::runtime {

Message::Message() { text("karst: "); }

Message::~Message() {
  line_[size_++] = '\n';
  sys::write(2, line_, size_);
}

Message& Message::text(const char* s) {
  while (*s != '\0' && size_ < sizeof line_ - 1) line_[size_++] = *s++;
  return *this;
}

Message& Message::text(const char* s, std::uint64_t n) {
  // What we quote (options, paths) is not ours: keep the terminal safe.
  for (; n != 0 && size_ < sizeof line_ - 1; --n, ++s) line_[size_++] = (*s < ' ' || *s == 127) ? '?' : *s;
  return *this;
}

Message& Message::number(std::uint64_t n) {
  char digits[20];
  unsigned count = 0;
  do digits[count++] = static_cast<char>('0' + n % 10);
  while ((n /= 10) != 0);
  while (count != 0 && size_ < sizeof line_ - 1) line_[size_++] = digits[--count];
  return *this;
}

}  // namespace karst::runtime
