// SPDX-License-Identifier: MIT
// What include/karst/karst.h declares for handlers of calls.
#include "arch/x86_64/vectors.h"
#include "runtime/recording/seams.h"
#include "runtime/system/memory.h"
#include "runtime/values/handlers.h"
#include "runtime/values/values.h"

namespace karst::runtime {
namespace {

using namespace format;

/// `struct karst_value`.
struct ShownValue {
  std::uint32_t size;
  std::uint32_t state;
  unsigned char bytes[104];
};
static_assert(kMostValueBytes < sizeof ShownValue::bytes);
enum : std::uint32_t { kWhole, kCut, kNull, kUnreadable };

const std::uint64_t* words_of(const HandledCall& call) { return reinterpret_cast<const std::uint64_t*>(call.saved); }

std::uint32_t id_of(const HandledCall& call) {
  return static_cast<std::uint32_t>(call.saved->event_low_bits) & KARST_EVENT_ID_MASK;
}

bool is_traced() { return own_arena(); }

}  // namespace
}  // namespace karst::runtime

using namespace karst;
using namespace karst::runtime;

#define KARST_API(type, name) extern "C" __attribute__((visibility("default"))) type karst_api_##name

KARST_API(int, handle)(const char* pattern, CallHandler enter, CallHandler leave, void* context) {
  return is_traced() ? handle_named(pattern, {enter, leave, context}) : -38 /* ENOSYS */;
}

KARST_API(int, handle_function)(const void* function, CallHandler enter, CallHandler leave, void* context) {
  if (!is_traced()) return -38 /* ENOSYS */;
  return handle_at(reinterpret_cast<std::uintptr_t>(function), {enter, leave, context});
}

KARST_API(std::uint64_t, call_integer)(const HandledCall* call, std::uint32_t number) {
  if (call->leaves != 0) return number == 0 ? call->saved->rax : 0;
  const format::SavedRegisters& saved = *call->saved;
  const std::uint64_t registers[] = {saved.rdi, saved.rsi, saved.rdx, saved.rcx, saved.r8, saved.r9};
  constexpr std::uint32_t kInRegisters = sizeof registers / sizeof registers[0];
  return number < kInRegisters ? registers[number] : 0;
}

KARST_API(std::uint64_t, call_double)(const HandledCall* call, std::uint32_t number) {
  std::uint64_t bits = 0;
  const std::uint32_t count = call->leaves != 0 ? 1 : format::kVectorPlaces;
  if (number < count) copy(&bits, arch::kept_vector(call->vectors, number), sizeof bits);
  return bits;
}

KARST_API(int, call_value)(const HandledCall* call, std::uint32_t number, ShownValue* to) {
  const format::ArenaValueSpec* spec = value_spec(id_of(*call));
  const std::uint32_t first = spec != nullptr && call->leaves != 0 ? spec->arguments : 0;
  const std::uint32_t count = spec == nullptr ? 0 : call->leaves != 0 ? spec->returned : spec->arguments;
  if (number >= count || first + number >= format::kMostValues) return -2 /* ENOENT */;
  const std::uint8_t head = read_value(*spec, first + number, words_of(*call), call->vectors,
                                       reinterpret_cast<std::uintptr_t>(call->saved->stack), to->bytes);
  to->state = head == format::kValueNull                                         ? kNull
              : head == format::kValueUnreadable || head == format::kValueNoRoom ? kUnreadable
              : head >= format::kValueCut                                        ? kCut
                                                                                 : kWhole;
  to->size = to->state == kNull || to->state == kUnreadable ? 0 : head & 0x7fU;
  to->bytes[to->size] = 0;
  return 0;
}
