// A note's numbers as words are put together, held against the bytes one by one.
#include "runtime/recording/note_words.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "format/values.h"

namespace karst::runtime {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes bytes_of(const std::vector<std::uint64_t>& numbers) {
  Bytes all;
  for (std::uint64_t number : numbers) {
    const std::size_t size = all.size();
    all.push_back(0);
    for (; number != 0; number >>= 8, ++all[size]) all.push_back(static_cast<unsigned char>(number));
  }
  all.push_back(format::kValuesEnd);
  return all;
}

std::vector<std::vector<std::uint64_t>> numbers_of_all_sizes() {
  std::mt19937_64 random(7);
  std::vector<std::vector<std::uint64_t>> all = {{}, {0}, {0, 0, 0}, {~0ULL}, {0xff, 0x100}, {1ULL << 55, 1ULL << 55}};
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::uint64_t> numbers(random() % 8);
    for (std::uint64_t& number : numbers) number = random() % 5 == 0 ? 0 : random() >> random() % 64;
    all.push_back(numbers);
  }
  return all;
}

TEST(NoteWords, ShortNotesHoldWhatFits) {
  int kept = 0;
  for (const auto& numbers : numbers_of_all_sizes()) {
    const Bytes expected = bytes_of(numbers);
    ShortNote note;
    bool fits = true;
    for (std::uint64_t number : numbers) fits = fits && note.add(number);
    fits = fits && note.end(format::kValuesEnd);
    bool is_wide = false;  // numbers of 8 bytes go another way
    for (std::uint64_t number : numbers) is_wide |= number >> 56 != 0;
    ASSERT_EQ(fits, expected.size() <= 16 && !is_wide);
    if (!fits) continue;
    ++kept;
    ASSERT_EQ(note.size(), expected.size());
    for (std::size_t i = 0; i < 16; ++i)
      ASSERT_EQ(static_cast<unsigned char>(note.bytes() >> (8 * i)), i < expected.size() ? expected[i] : 0);
  }
  EXPECT_GT(kept, 1000);
}

TEST(NoteWords, LongNotesAreTheSameBytes) {
  for (const auto& numbers : numbers_of_all_sizes()) {
    const Bytes expected = bytes_of(numbers);
    NoteWords words;
    for (std::uint64_t number : numbers) {
      const std::uint32_t size = format::note_bytes_of(number);
      words.add(size, 1);
      if (size != 0) words.add(number, size);
    }
    words.add(format::kValuesEnd, 1);
    words.end();
    ASSERT_EQ(words.count(), format::note_words(static_cast<std::uint32_t>(expected.size())));
    for (std::size_t i = 0; i < words.count() * format::kNoteBytesInWord; ++i) {
      const std::uint64_t word = words.payloads()[i / format::kNoteBytesInWord];
      ASSERT_EQ(static_cast<unsigned char>(word >> (8 * (i % format::kNoteBytesInWord))),
                i < expected.size() ? expected[i] : 0);
    }
  }
}

}  // namespace
}  // namespace karst::runtime
