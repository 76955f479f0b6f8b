// SPDX-License-Identifier: MIT
#include "runtime/modules/note_names.h"

#include "format/log.h"
#include "format/note.h"
#include "format/printf.h"
#include "runtime/modules/arrivals.h"
#include "runtime/modules/ids.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/system/lock.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::uint32_t kLongest = 1000;         // bytes of a name or a file's path; what is longer is cut
constexpr std::uint32_t kRefused = 0xffffffffU;  // there was no room for it
bool g_said_full;

void say_full() {
  if (!g_said_full) Message().text("there are too many names of notes: those of further ones are not recorded");
  g_said_full = true;
}

std::uint32_t bounded_length(const char* text) {
  std::uint32_t n = 0;
  while (text != nullptr && n < kLongest && text[n] != '\0') ++n;
  return n;
}

/// The name, its file, its line and a format's values, put into the arena's text; 0: there is no room.
std::uint64_t add_text(const NoteName& name, const char* values, std::uint32_t values_size) {
  char line[10];
  std::uint32_t digits = 0;
  for (std::uint32_t rest = name.line; rest != 0; rest /= 10) line[digits++] = static_cast<char>('0' + rest % 10);
  const std::uint32_t name_size = bounded_length(name.name);
  const std::uint32_t file_size = bounded_length(name.file);
  const std::uint32_t line_end = name_size + 1 + file_size + 1 + digits;
  const std::uint32_t size = line_end + (values_size != 0 ? 1 + values_size : 0);
  const std::uint32_t offset = g_arena.take_text(size);
  char* to = offset != 0 ? g_arena.text(offset, size) : nullptr;
  if (to == nullptr) return 0;
  copy(to, name.name, name_size);
  to[name_size] = '\0';
  if (file_size != 0) copy(to + name_size + 1, name.file, file_size);
  to[name_size + 1 + file_size] = '\0';
  for (std::uint32_t i = 0; i < digits; ++i) to[line_end - 1 - i] = line[i];
  if (values_size != 0) {
    to[line_end] = '\0';
    copy(to + line_end + 1, values, values_size);
  }
  return make_text_address(offset, size);
}

/// The name's id; 0: there is no room. Signals must wait.
std::uint32_t enter_into_table(const NoteName& name, const char* values, std::uint32_t values_size, bool of_fibers) {
  if (!g_arena.exists() || !own_arena()) return 0;
  const std::uint64_t text = add_text(name, values, values_size);
  const std::uint32_t id = text != 0 ? enter_text(of_fibers ? MadeUp::kFibers : MadeUp::kNotes, text) : 0;
  if (id == 0) say_full();
  return id;
}

/// Signals wait, as a handler may come to the same name. Two threads may both enter it: the first one's id stays.
std::uint32_t enter(NoteName& name, const char* values = nullptr, std::uint32_t values_size = 0,
                    bool of_fibers = false) {
  if (recording_has_stopped()) return 0;  // strict seccomp: no further system call
  const OverheadTime time(Overhead::kName);
  const sys::SignalsBlocked guard;
  const std::uint32_t id = enter_into_table(name, values, values_size, of_fibers);
  if (id == 0) {
    if (g_arena.exists() && own_arena()) store(name.id, kRefused);
    return 0;
  }
  if (is_to_be_asked(id)) ask_session_about(id);
  return exchange_if(name.id, 0U, id) ? id : load(name.id);
}

/// Which of a format's arguments are texts to be read. printf's says so: a pointer to characters may be there for its
/// address, and characters with a precision may lack a NUL.
std::uint32_t texts_of(const char* format, const char* types) {
  std::uint32_t texts = 0;
  const auto is = [types](std::uint32_t argument, char type) { return types[1 + argument] == type; };
  std::uint32_t count = 0;
  for (; count < kMostLogArguments && types[1 + count] != '\0'; ++count)
    if (is(count, 'S') || (types[0] == '{' && is(count, kLogText))) texts |= 1U << count;
  if (types[0] != '%') return texts;
  const std::uint32_t size = bounded_length(format);
  PrintfConversion found;
  int next = 0;
  for (std::uint32_t at = 0; next_conversion(format, size, at, next, found);) {
    if (found.argument < 0 || found.argument >= static_cast<int>(count)) continue;
    const auto argument = static_cast<std::uint32_t>(found.argument);
    if (found.conversion != 's' || found.length != 0 || !(is(argument, kLogText) || is(argument, 'u'))) continue;
    texts |= 1U << argument;
    if (found.precision >= 0) texts |= 1U << (kBoundedTexts + argument);
  }
  return texts;
}

__attribute__((noinline)) std::uint32_t enter_format(NoteFormat& format, const char* types) {
  const std::uint32_t texts = texts_of(format.name.name, types);
  store(format.texts, texts);
  char values[1 + kMostLogArguments] = {types[0]};
  std::uint32_t size = 1;
  for (; size <= kMostLogArguments && types[size] != '\0'; ++size) {
    const bool is_text = (texts >> (size - 1) & 1) != 0;
    values[size] = is_text ? kLogText : log_bytes(types[size]) != 0 ? types[size] : kLogAddress;
  }
  return enter(format.name, values, size);
}

}  // namespace

std::uint32_t note_format_id(NoteFormat* format, const char* types) {
  const std::uint32_t id = load(format->name.id);
  return wanted_note(id != 0 ? id : enter_format(*format, types));
}

std::uint32_t enter_note(NoteName& name, const char* values, std::uint32_t size) { return enter(name, values, size); }

void enter_fact(const char* text, const char* file, const char* values, std::uint32_t size) {
  if (recording_has_stopped()) return;
  const sys::SignalsBlocked guard;
  enter_into_table(NoteName{text, file, 0, 0}, values, size, false);
}

std::uint32_t fiber_note_id() {
  static NoteName suspended{kSuspended, nullptr, 0, 0};
  if (!is_switched_on()) return 0;
  std::uint32_t id = load(suspended.id);
  if (id == 0) id = enter(suspended, nullptr, 0, true);
  return id <= g_arena.function_count() ? id : 0;
}

namespace {

/// The name of this key, which is not 0.
NoteName* find_name(std::uint64_t key, const char* text) {
  // Entries are claimed and never given back. A name is whole before `whole` says whose it is.
  struct Entry {
    std::uint64_t claimed;
    std::uint64_t whole;
    NoteName name;
  };
  constexpr std::uint32_t kMost = 1024;
  static Entry entries[kMost];
  const auto hash = static_cast<std::uint32_t>(key * 0x9e3779b97f4a7c15ULL >> 54);
  for (std::uint32_t i = 0; i < kMost; ++i) {
    Entry& entry = entries[(hash + i) % kMost];
    std::uint64_t claimed = load(entry.claimed);
    if (claimed == 0 && exchange_if(entry.claimed, std::uint64_t{0}, key)) {
      entry.name.name = text;
      store(entry.whole, key);
      return &entry.name;
    }
    if (claimed == 0) claimed = load(entry.claimed);
    if (claimed != key) continue;
    // Another thread may be about to make it. It may also be the one that this signal handler interrupted.
    for (int tries = 0; tries < 1000; ++tries)
      if (load(entry.whole) == key) return &entry.name;
    return nullptr;
  }
  say_full();
  return nullptr;
}

// Above all addresses of a process.
constexpr std::uint64_t use_key(unsigned use) { return std::uint64_t{use} << 56; }
constexpr unsigned kColorUse = 255;

}  // namespace

NoteName* note_name_of(const char* text, NameUse use) {
  if (text == nullptr) return nullptr;
  return find_name(reinterpret_cast<std::uintptr_t>(text) | use_key(static_cast<unsigned>(use)), text);
}

NoteName* note_name_of_color(std::uint32_t color) { return find_name(color | use_key(kColorUse), ""); }

ColorText::ColorText(std::uint32_t color) {
  text[0] = kColorMark;
  for (std::uint32_t i = 0; i < kColorDigits; ++i)
    text[1 + i] = "0123456789abcdef"[color >> 4 * (kColorDigits - 1 - i) & 15];
}

extern "C" std::uint32_t karst_note_id(NoteName* name) {
  if (name == nullptr || name->name == nullptr) return 0;
  const std::uint32_t id = load(name->id);
  return wanted_note(id != 0 ? id : enter(*name));
}

}  // namespace karst::runtime
