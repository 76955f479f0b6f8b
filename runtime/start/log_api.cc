// SPDX-License-Identifier: MIT
// Logs (format/log.h): a call site hands over its format, its arguments' types and a word for each. Numbers are packed
// on the stack; texts are copied from where they lie into the note's events, so a log needs little stack.
#include <stddef.h>

#include "format/log.h"
#include "format/note.h"
#include "format/printf.h"
#include "runtime/modules/note_names.h"
#include "runtime/recording/note_words.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"

namespace karst::runtime {
namespace {

using namespace format;

constexpr std::uint32_t kMostNumberBytes = 8;

/// karst_text_word of karst.h.
struct SizedText {
  const char* data;
  std::size_t size;
};

/// 0 is no level: a note without any byte is one whose bytes were taken away.
unsigned char level_byte(std::uint32_t level) {
  return static_cast<unsigned char>(level < 1 ? 1 : level > 255 ? 255 : level);
}

/// By letter: bytes of an argument that is no text.
struct NumberBytes {
  unsigned char of[128];
};
constexpr NumberBytes kNumberBytes = [] {
  NumberBytes bytes{};
  for (int type = 0; type < 128; ++type) {
    const std::uint32_t known = log_bytes(static_cast<char>(type));
    bytes.of[type] = static_cast<unsigned char>(known != 0 ? known : kMostNumberBytes);
  }
  return bytes;
}();
std::uint32_t number_bytes(char type) { return kNumberBytes.of[type & 0x7f]; }

/// How many bytes of the text the format wants: its precision. A negative one is none.
std::uint32_t bound_of(const char* format, const std::uint64_t* words, std::uint32_t count, std::uint32_t argument) {
  std::uint32_t size = 0;
  while (size < kMostNoteBytes && format[size] != '\0') ++size;
  PrintfConversion found;
  int next = 0;
  for (std::uint32_t at = 0; next_conversion(format, size, at, next, found);) {
    if (found.argument != static_cast<int>(argument) || found.precision < 0) continue;
    int bound = found.precision;
    if (found.precision_argument >= static_cast<int>(count)) return 0;
    if (found.precision_argument >= 0) bound = static_cast<int>(words[found.precision_argument]);
    return bound >= 0 ? static_cast<std::uint32_t>(bound) : kMostNoteBytes;
  }
  return 0;
}

class Log {
 public:
  Log(const NoteFormat& format, const char* types, const std::uint64_t* words) : format_(format), words_(words) {
    while (count_ < kMostLogArguments && types[1 + count_] != '\0') ++count_;
    for (std::uint32_t i = 0; i < count_; ++i) types_[i] = types[1 + i];
  }

  void record(std::uint32_t id, std::uint32_t level, std::uint32_t texts) {
    own_[used_++] = level_byte(level);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if ((texts >> i & 1) != 0)
        add_text(i, (texts >> (kBoundedTexts + i) & 1) != 0);
      else
        add_bits(words_[i], number_bytes(types_[i]));
    }
    end_piece();
    record_note(NoteKind::kLog, id, pieces_, piece_count_, total_);
  }

 private:
  void add_bits(std::uint64_t bits, std::uint32_t bytes) {
    __builtin_memcpy(own_ + used_, &bits, sizeof bits);
    used_ += bytes;
  }

  void end_piece() {
    add_piece(own_ + piece_, used_ - piece_);
    piece_ = used_;
  }
  void add_piece(const void* from, std::uint32_t size) {
    if (size == 0) return;
    pieces_[piece_count_++] = {static_cast<const unsigned char*>(from), size};
    total_ += size;
  }

  void add_text(std::uint32_t argument, bool is_bounded) {
    SizedText text{reinterpret_cast<const char*>(words_[argument]), ~std::size_t{0}};
    if (types_[argument] == 'S') text = *reinterpret_cast<const SizedText*>(words_[argument]);
    if (is_bounded) text.size = bound_of(format_.name.name, words_, count_, argument);
    if (text.data == nullptr) return add_bits(text.size == 0 ? 0 : kLogTextNull, sizeof kLogTextNull);
    // What comes behind has its room.
    const std::uint32_t taken = total_ + used_ - piece_ + sizeof kLogTextCut;
    const std::uint32_t room = kMostNoteBytes - taken - (count_ - argument - 1) * kMostNumberBytes;
    std::uint32_t size = 0;
    while (size < room && size < text.size && text.data[size] != '\0') ++size;
    const bool is_cut = size == room && size < text.size && text.data[size] != '\0';
    add_bits(size | (is_cut ? std::uint32_t{kLogTextCut} : 0U), sizeof kLogTextCut);
    end_piece();
    add_piece(text.data, size);
  }

  const NoteFormat& format_;
  const std::uint64_t* words_;
  char types_[kMostLogArguments];
  std::uint32_t count_ = 0;
  unsigned char own_[1 + kMostLogArguments * kMostNumberBytes + sizeof(std::uint64_t)];
  std::uint32_t used_ = 0;   // of own_
  std::uint32_t piece_ = 0;  // begins here in own_
  NotePiece pieces_[2 * kMostLogArguments + 1];
  std::uint32_t piece_count_ = 0;
  std::uint32_t total_ = 0;  // bytes of pieces
};

/// Numbers alone.
void record_numbers(std::uint32_t id, std::uint32_t level, const char* types, const std::uint64_t* words) {
  static_assert(1 + kMostLogArguments * kMostNumberBytes <= NoteWords::kMostBytes);
  NoteWords note;
  note.add(level_byte(level), 1);
  for (std::uint32_t i = 0; i < kMostLogArguments && types[1 + i] != '\0'; ++i) {
    const std::uint32_t bytes = number_bytes(types[1 + i]);
    note.add(words[i] & (~std::uint64_t{0} >> (64 - 8 * bytes)), bytes);
  }
  note.end();
  record_note_words(NoteKind::kLog, id, note.payloads(), note.count());
}

/// Apart: it needs many registers and some hundred bytes of stack.
__attribute__((noinline)) void record_texts(const NoteFormat& format, std::uint32_t id, std::uint32_t level,
                                            const char* types, const std::uint64_t* words) {
  Log(format, types, words).record(id, level, load(format.texts));
}

}  // namespace
}  // namespace karst::runtime

using namespace karst::runtime;

extern "C" __attribute__((visibility("default"))) void karst_api_log(NoteFormat* format, const char* types,
                                                                     std::uint32_t level, const std::uint64_t* words) {
  const std::uint32_t id = note_format_id(format, types);
  if (id == 0) return;
  if (load(format->texts) == 0) return record_numbers(id, level, types, words);
  record_texts(*format, id, level, types, words);
}
