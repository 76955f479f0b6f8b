#include "runtime/hooks/mappings.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

/// Of lines `begin-end rwxp ...`, a character at a time.
class Line {
 public:
  /// True: the mapping is known, and is so once in each line.
  bool take(char c) {
    if (c == '\n') {
      *this = Line();
      return false;
    }
    switch (field_) {
      case Field::kBegin:
        return number(c, mapping_.begin, '-', Field::kEnd);
      case Field::kEnd:
        return number(c, mapping_.end, ' ', Field::kProtection);
      case Field::kProtection:
        if (c == ' ') field_ = Field::kRest;
        mapping_.protection |= c == 'r' ? PROT_READ : c == 'w' ? PROT_WRITE : c == 'x' ? PROT_EXEC : 0;
        return c == ' ';
      case Field::kRest:
        break;
    }
    return false;
  }
  const Mapping& mapping() const { return mapping_; }

 private:
  enum class Field { kBegin, kEnd, kProtection, kRest };
  bool number(char c, std::uintptr_t& value, char last, Field next) {
    if (c == last)
      field_ = next;
    else
      value = value << 4 | static_cast<std::uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    return false;
  }

  Field field_ = Field::kBegin;
  Mapping mapping_{};
};

}  // namespace

bool for_each_mapping(void* context, bool (*visit)(void* context, const Mapping& mapping)) {
  const long fd = sys::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[2048];
  Line line;
  bool goes_on = true;
  long n = 0;
  while (goes_on && (n = sys::read(static_cast<int>(fd), text, sizeof text)) > 0)
    for (long i = 0; i < n && goes_on; ++i)
      if (line.take(text[i])) goes_on = visit(context, line.mapping());
  sys::close(static_cast<int>(fd));
  return n >= 0;
}

}  // namespace karst::runtime
