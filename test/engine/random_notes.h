// Traces of threads that say all kinds of things of themselves among their calls.
#pragma once
#include <cstdint>
#include <random>
#include <string>

#include "format/note.h"
#include "test/analysis/sample_trace.h"

namespace karst::test {

using format::NoteKind;

inline std::string bytes_of_number(std::uint64_t number) {
  std::string bytes;
  for (; number != 0; number >>= 8) bytes += static_cast<char>(number & 0xff);
  return bytes;
}

// Three threads that say all kinds of things while main() calls work(), and one that says nothing.
inline SampleTrace random_notes(std::uint32_t seed, int rounds = 300) {
  constexpr std::uint32_t kMain = 1, kWork = 2, kFull = 3, kLength = 4;
  SampleTrace made;
  made.process(1, "app", {"main", "work(int)", "cache is full", "queue length"});
  made.function(kWork).values = "n:i4|";
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (std::uint32_t tid = 1; tid <= 3; ++tid) {
    std::uint64_t now = 1000;
    const auto later = [&] { return now += below(3) == 0 ? 0 : below(200); };
    made.thread(tid, "app").enter(kMain, now);
    for (int i = 0; i < rounds; ++i) {
      const auto say = [&] {
        switch (below(7)) {
          case 0:
            return made.values(NoteKind::kMessage, kFull, "", later());
          case 1:
            return made.values(NoteKind::kMessage, 0, "Line " + std::to_string(below(50)), later());
          case 2:
            return made.values(NoteKind::kInteger, kLength, bytes_of_number(below(1000)), later());
          case 3:
            return made.values(NoteKind::kFrame, kMain, "", later());
          case 4:
            return made.note(NoteKind::kRequest, below(9), later());
          case 5:
            return made.values(NoteKind::kText, 0, "text of " + std::to_string(i), later());
          default:
            return made.values(static_cast<NoteKind>(77), 0, "later", later());
        }
      };
      if (below(3) == 0) say();
      made.values(NoteKind::kArguments, kWork, SampleTrace::two_integers(1, 2), later()).enter(kWork, later());
      for (std::uint32_t n = below(3); n != 0; --n) say();
      made.exit(kWork, later());
    }
    made.exit(kMain, later());
  }
  made.thread(4, "quiet").call(kMain, 1000, 9000);
  return made;
}

}  // namespace karst::test
