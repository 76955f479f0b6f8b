// SPDX-License-Identifier: MIT
// What the process may do with its own memory, as the kernel has it now: the rights of pages that are to be written to.
// By bare system calls, which no library stands before; so not by base/process_maps.h, which takes memory.
#pragma once
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/cpu.h"

namespace karst::interpose {

class Rights {
 public:
  Rights() {
    const long file = call(SYS_openat, AT_FDCWD, "/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const long memory = call(SYS_mmap, nullptr, kMost * sizeof(Range), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (memory >= 0 || memory < -4095) {
      ranges_ = reinterpret_cast<Range*>(memory);
      is_known_ = read(static_cast<int>(file));
    }
    call(SYS_close, file);
  }
  ~Rights() {
    if (ranges_ != nullptr) call(SYS_munmap, ranges_, kMost * sizeof(Range));
  }
  Rights(const Rights&) = delete;
  Rights& operator=(const Rights&) = delete;

  bool is_known() const { return is_known_; }
  /// PROT_READ and its like; -1: nothing is mapped there.
  int of(uintptr_t address) const {
    size_t low = 0, high = count_;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (ranges_[middle].end <= address)
        low = middle + 1;
      else
        high = middle;
    }
    return low < count_ && ranges_[low].begin <= address ? ranges_[low].rights : -1;
  }

 private:
  struct Range {
    uintptr_t begin, end;
    int rights;
  };
  static constexpr size_t kMost = 70'000;  // more than the kernel lets a process have, unless it was told to

  static long word(const void* pointer) { return reinterpret_cast<long>(pointer); }
  static long word(long number) { return number; }
  template <typename... Words>
  static long call(long number, Words... given) {
    const long words[6] = {word(given)...};
    return arch::system_call(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  }

  /// A line is "7f10-7f20 r-xp ...".
  bool read(int file) {
    char bytes[2048];
    uintptr_t numbers[2] = {};
    int part = 0;  // 0, 1: of the two numbers; 2: rights; 3: the rest of the line
    int rights = 0;
    for (;;) {
      const long size = call(SYS_read, file, bytes, sizeof bytes);
      if (size < 0) return false;
      if (size == 0) return count_ != 0;
      for (long i = 0; i < size; ++i) {
        const char c = bytes[i];
        if (c == '\n') {
          if (count_ == kMost) return false;
          ranges_[count_++] = {numbers[0], numbers[1], rights};
          numbers[0] = numbers[1] = 0;
          part = rights = 0;
        } else if (part < 2 && (c == '-' || c == ' ')) {
          ++part;
        } else if (part < 2) {
          numbers[part] = numbers[part] << 4 | static_cast<uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
        } else if (part == 2) {
          if (c == 'r') rights |= PROT_READ;
          if (c == 'w') rights |= PROT_WRITE;
          if (c == 'x') rights |= PROT_EXEC;
          if (c == ' ') part = 3;
        }
      }
    }
  }

  Range* ranges_ = nullptr;
  size_t count_ = 0;
  bool is_known_ = false;
};

}  // namespace karst::interpose
