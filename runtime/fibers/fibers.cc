// SPDX-License-Identifier: MIT
// Each note says what it leaves, too: the oldest note that is kept then tells whose the calls before it are. So the
// thread's fiber is known also while nothing is recorded.
#include "runtime/fibers/fibers.h"

#include "format/note.h"
#include "runtime/modules/note_names.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"

namespace karst::runtime {
namespace {

// The program's memory, so a forked child has it as well.
__attribute__((tls_model("initial-exec"))) __thread std::uint64_t t_fiber;

void record_fiber(std::uint32_t id, std::uint64_t left, std::uint64_t entered, const char* name) {
  using namespace format;
  constexpr std::uint32_t kBits = 8 * kNoteBytesInWord;
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;
  std::uint64_t payloads[kFiberNameWord + note_words(kMostFiberNameBytes)];
  payloads[0] = left & kMask;
  payloads[1] = left >> kBits;
  payloads[2] = entered & kMask;
  payloads[3] = entered >> kBits;
  // Threads that have no thread-local memory of their own share another's.
  if (threads_are_found_by_tid()) {
    payloads[0] = 0;
    payloads[1] = kFiberLeftUnknown;
  }
  std::uint32_t words = entered == 0 ? 2 : kFiberNameWord;
  std::uint64_t word = 0;
  std::uint32_t size = 0;
  for (; entered != 0 && name != nullptr && size < kMostFiberNameBytes && name[size] != '\0'; ++size) {
    const std::uint32_t in_word = size % kNoteBytesInWord;
    if (in_word == 0) word = 0;
    word |= std::uint64_t{static_cast<unsigned char>(name[size])} << (8 * in_word);
    payloads[kFiberNameWord + size / kNoteBytesInWord] = word;
  }
  words += note_words(size);
  record_note_words(NoteKind::kFiber, id, payloads, words);
}

}  // namespace

void enter_fiber(std::uint64_t fiber, const char* name, bool again) {
  const std::uint64_t left = load(t_fiber);
  if (left == fiber && !again) return;
  store(t_fiber, fiber);
  if (const std::uint32_t id = fiber_note_id(); id != 0) record_fiber(id, left, fiber, name);
}

}  // namespace karst::runtime
