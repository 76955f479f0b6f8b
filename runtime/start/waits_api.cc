// What libkarst-system.so tells of waits (interpose/), and karst_name_lock() of include/karst/karst.h.
#include "format/lock.h"
#include "format/note.h"
#include "format/values.h"
#include "runtime/hooks/note_names.h"
#include "runtime/maintenance/switches.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"

namespace karst::runtime {
namespace {

using namespace format;

/// A value's size and its bytes, the upper ones left out if they are 0. Returns their end.
unsigned char* add_value(unsigned char* to, std::uint64_t value) {
  unsigned char* const size = to++;
  for (; value != 0; value >>= 8) *to++ = static_cast<unsigned char>(value);
  *size = static_cast<unsigned char>(to - size - 1);
  return to;
}

constexpr std::uint32_t kMostBytes = 2 * (1 + sizeof(std::uint64_t)) + 1;

void record_values(std::uint32_t id, unsigned char* bytes, unsigned char* end) {
  *end++ = kValuesEnd;
  record_note(NoteKind::kArguments, id, bytes, static_cast<std::uint32_t>(end - bytes));
}

}  // namespace
}  // namespace karst::runtime

using namespace karst::runtime;

/// Enters the name of such waits, so that no wait's begin is late by it: karst may have to be asked.
extern "C" __attribute__((visibility("default"))) void karst_api_name_wait(NoteName* name, bool has_holder) {
  if (has_holder)
    note_id_with_values(name, kLockValues, sizeof kLockValues - 1);
  else
    note_id_with_values(name, kWaitValues, sizeof kWaitValues - 1);
}

/// The next zone of this name of the calling thread is a wait for that lock, which thread `holder` has. Any context;
/// keeps errno.
extern "C" __attribute__((visibility("default"))) void karst_api_lock_wait(NoteName* name, const void* lock,
                                                                           std::uint32_t holder) {
  const std::uint32_t id = note_id_with_values(name, kLockValues, sizeof kLockValues - 1);
  if (id == 0) return;
  unsigned char bytes[kMostBytes];
  record_values(id, bytes, add_value(add_value(bytes, reinterpret_cast<std::uintptr_t>(lock)), holder));
}

/// The same of what no thread has.
extern "C" __attribute__((visibility("default"))) void karst_api_wait(NoteName* name, const void* lock) {
  const std::uint32_t id = note_id_with_values(name, kWaitValues, sizeof kWaitValues - 1);
  if (id == 0) return;
  unsigned char bytes[kMostBytes];
  record_values(id, bytes, add_value(bytes, reinterpret_cast<std::uintptr_t>(lock)));
}

extern "C" __attribute__((visibility("default"))) void karst_api_name_lock(const void* lock, const char* text) {
  if (text == nullptr || !is_switched_on()) return;
  constexpr std::uint32_t kLongest = 200;
  char name[2 + 16 + 1 + kLongest + 1] = "0x";
  std::uint32_t used = 2;
  const auto address = reinterpret_cast<std::uintptr_t>(lock);
  for (int shift = 60; shift >= 0; shift -= 4)
    if (address >> shift != 0 || shift == 0) name[used++] = "0123456789abcdef"[address >> shift & 15];
  name[used++] = ' ';
  for (std::uint32_t i = 0; i < kLongest && text[i] != '\0'; ++i) name[used++] = text[i];
  name[used] = '\0';
  NoteName entered{name, nullptr, 0, 0};
  note_id_with_values(&entered, kLockName, sizeof kLockName - 1);
}
