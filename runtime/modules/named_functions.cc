// SPDX-License-Identifier: MIT
// A table from what a function is called to its id: open addressing, words that are written once and read without a
// lock. What it is called lies in the arena alone, and is compared there.
#include "runtime/modules/named_functions.h"

#include <sys/mman.h>

#include "format/arena.h"
#include "format/note.h"
#include "runtime/modules/arrivals.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/marks.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/system/lock.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {
namespace {

using namespace format;

constexpr std::uint32_t kPlaces = 1U << 20;
constexpr std::uint32_t kMostNamed = kPlaces / 4 * 3;

std::uint64_t* g_table;  // of hash << 32 | id; 0: free
std::uint32_t g_used;
WipedLock g_lock;  // of insertions
bool g_said_full;

void say_full() {
  if (!g_said_full) Message().text("there are too many functions with names: further ones are not recorded");
  g_said_full = true;
}

NamePart bounded(NamePart part) {
  std::uint32_t size = 0;
  while (size < part.size && size < kLongestNamePart && part.data[size] != '\0') ++size;
  return {part.data, size};
}

/// `name`, `file` and line with a NUL between each two, as an arena's text has them.
struct Text {
  char bytes[2 * kLongestNamePart + 2 + 10];
  std::uint32_t size = 0;

  Text(NamePart name, NamePart file, std::uint32_t line) {
    add(bounded(name));
    bytes[size++] = '\0';
    add(bounded(file));
    bytes[size++] = '\0';
    char digits[10];
    std::uint32_t count = 0;
    for (; line != 0; line /= 10) digits[count++] = static_cast<char>('0' + line % 10);
    while (count != 0) bytes[size++] = digits[--count];
  }

  /// FNV-1a; of another module it is another one.
  std::uint32_t hash(MadeUp module) const {
    std::uint32_t hash = 2166136261U ^ static_cast<std::uint32_t>(module);
    for (std::uint32_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 16777619U;
    return hash;
  }

 private:
  void add(NamePart part) {
    copy(bytes + size, part.data, part.size);
    size += part.size;
  }
};

bool is_text_of(std::uint32_t id, const Text& text) {
  const std::uint64_t address = g_arena.functions()[id].address;
  const char* const kept = g_arena.text(text_address_offset(address), text_address_size(address));
  if (kept == nullptr || text_address_size(address) != text.size) return false;
  for (std::uint32_t i = 0; i < text.size; ++i)
    if (kept[i] != text.bytes[i]) return false;
  return true;
}

/// Where it is, or would be. Null: every place is taken.
std::uint64_t* place_of(std::uint32_t hash, const Text& text) {
  std::uint64_t* const table = load(g_table);
  for (std::uint32_t n = 0; table != nullptr && n < kPlaces; ++n) {
    std::uint64_t* const place = table + ((hash + n) & (kPlaces - 1));
    const std::uint64_t word = load(*place);
    if (word == 0 || (word >> 32 == hash && is_text_of(static_cast<std::uint32_t>(word), text))) return place;
  }
  return nullptr;
}

/// Under the lock.
bool make_table() {
  if (g_table != nullptr) return true;
  const long table =
      sys::mmap(0, kPlaces * sizeof *g_table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(table)) return false;
  store(g_table, reinterpret_cast<std::uint64_t*>(table));
  return true;
}

std::uint32_t put_text(const Text& text) {
  const std::uint32_t offset = g_arena.take_text(text.size);
  char* const to = offset != 0 ? g_arena.text(offset, text.size) : nullptr;
  if (to == nullptr) return 0;
  copy(to, text.bytes, text.size);
  return offset;
}

/// Its id, and whether it is new. Signals must wait.
std::uint32_t insert(MadeUp module, std::uint32_t hash, const Text& text, bool& is_new) {
  const Locked lock(g_lock);
  if (!make_table()) return 0;
  std::uint64_t* const place = place_of(hash, text);
  if (place != nullptr && *place != 0) return static_cast<std::uint32_t>(*place);
  const std::uint32_t offset = place != nullptr && g_used < kMostNamed ? put_text(text) : 0;
  const std::uint32_t id = offset != 0 ? enter_text(module, make_text_address(offset, text.size)) : 0;
  if (id == 0) return say_full(), 0;
  ++g_used;
  store(*place, std::uint64_t{hash} << 32 | id);
  is_new = true;
  return id;
}

}  // namespace

bool prepare_named_functions() { return g_lock.create(); }

std::uint32_t named_function(MadeUp module, NamePart name, NamePart file, std::uint32_t line) {
  if (recording_has_stopped() || !g_arena.exists() || !own_arena()) return 0;
  const Text text(name, file, line);
  const std::uint32_t hash = text.hash(module);
  if (const std::uint64_t* const known = place_of(hash, text); known != nullptr && load(*known) != 0)
    return static_cast<std::uint32_t>(load(*known));
  const OverheadTime time(Overhead::kName);
  const sys::SignalsBlocked guard;
  bool is_new = false;
  const std::uint32_t id = insert(module, hash, text, is_new);
  if (is_new && is_to_be_asked(id)) ask_session_about(id);
  return id;
}

void exit_by_exception(std::uint32_t id, std::uintptr_t frame) {
  if (karst_wanted_function(id) == 0) return;
  const Event words[] = {make_mark(0, Mark::kUnwound), make_event(0, true, id)};
  record_group(words, 2);
  calls_left(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), frame);
}

extern "C" std::uint32_t karst_wanted_function(std::uint32_t id) {
  if (id == 0 || id > g_arena.function_count()) return 0;
  if (load(karst_marks_slowly) != 0 && !is_switched_on()) return 0;
  return is_switched_on(id) ? id : 0;
}

}  // namespace karst::runtime
