// SPDX-License-Identifier: MIT
// A function's first call decides which id its address has, or that it has none, under a lock; all later ones find it
// in the table without. Who changes switches or unloads a module walks the table.
#include "runtime/modules/instrument.h"

#include <sys/mman.h>

#include "runtime/modules/arrivals.h"
#include "runtime/modules/enter.h"
#include "runtime/modules/ids.h"
#include "runtime/modules/module_image.h"
#include "runtime/modules/modules.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/system/assertion.h"
#include "runtime/system/lock.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/patch_lock.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

extern "C" {
InstrumentedCall* karst_calls;
}

namespace {

constexpr std::uint32_t kPlaces = 1U << KARST_CALLS_BITS;
constexpr std::uint32_t kMostCalls = kPlaces / 4 * 3;

WipedLock g_lock;  // of insertions
std::uint32_t g_used;
std::uint32_t g_outside;  // entries for addresses in no module
bool g_said_full;

/// The n-th place to look at: after the first one they follow each other from a random place on, so that two modules
/// whose first places coincide do not fill each other's neighbourhood.
std::uint32_t place(std::uint64_t function, std::uint32_t n) {
  if (n == 0) return first_place(function);
  return static_cast<std::uint32_t>((function * 0x9E3779B97F4A7C15U >> (64 - KARST_CALLS_BITS)) + n) & (kPlaces - 1);
}

/// The entry of the function, or the free one where it would be; null when there is neither.
InstrumentedCall* entry_of(std::uint64_t function) {
  InstrumentedCall* const calls = load(karst_calls);
  if (calls == nullptr) return nullptr;
  for (std::uint32_t n = 0; n < kPlaces; ++n) {
    InstrumentedCall& c = calls[place(function, n)];
    const std::uint64_t key = load(c.function);
    if (key == function || key == 0) return &c;
  }
  return nullptr;
}

std::uint32_t id_if_on(std::uint32_t id) { return id != 0 && is_switched_on() && is_switched_on(id) ? id : 0; }

/// Gives an entry the id that `was` was to become, or 0 if it is switched off. Switches may change at any moment:
/// switch_instrument_call() passes by entries that are undecided, so what they are is looked at once more.
std::uint32_t decide(InstrumentedCall& c, std::uint32_t was, std::uint32_t id) {
  std::uint32_t decided = id_if_on(id);
  if (!exchange_if(c.id, was, decided)) return load(c.id) < kUndecided ? load(c.id) : 0;
  for (std::uint32_t wanted = id_if_on(id); wanted != decided; wanted = id_if_on(id)) {
    exchange_if(c.id, decided, wanted);
    decided = wanted;
  }
  return decided;
}

/// Modules that no wrapper linked do not tell when they come and go; those that are there at start are traced. It is
/// said once of each path, as a module that is opened again may lie at another address.
void say_if_came_unseen(std::uint64_t function) {
  constexpr std::uint32_t kMostSaid = 8;
  static std::uint64_t s_said[kMostSaid];  // FNV-1a of the paths
  static std::uint32_t s_count;
  ModuleImage image;
  if (load(s_count) == kMostSaid || !find_image(function, image) || image.has_note) return;
  std::uint64_t path = 0xcbf29ce484222325U;
  for (const char* at = image.path; *at != '\0'; ++at) path = (path ^ static_cast<unsigned char>(*at)) * 0x100000001b3U;
  const Locked lock(g_lock);
  if (s_count == kMostSaid) return;
  for (std::uint32_t i = 0; i < s_count; ++i)
    if (s_said[i] == path) return;
  s_said[s_count++] = path;
  Message()
      .text(image.name())
      .text(
          " was opened while the program ran: its calls (-finstrument-functions) are traced when a wrapper of Karst's "
          "links it");
}

/// Enters the function under the lock. Its id is undecided if the session is to be asked.
InstrumentedCall* insert(std::uint64_t function, bool is_generated) {
  const Locked lock(g_lock);
  InstrumentedCall* c = entry_of(function);
  if (c == nullptr || (c->function == function && c->id < kUndecided)) return c;
  const bool fresh = c->function == 0;
  if (fresh && g_used >= kMostCalls) {
    if (!g_said_full) Message().text("too many functions built with -finstrument-functions: the rest is not traced");
    g_said_full = true;
    return nullptr;
  }
  if (!fresh && c->id != kUndecided) return c;  // another thread is asking
  bool is_new = false;
  const std::uint32_t id = enter_function(function, c->known_id, is_generated, &is_new);
  c->known_id = id;
  if (id == 0) ++g_outside;
  const bool ask = is_new && is_to_be_asked(id);
  const std::uint32_t undecided = kUndecided | id;
  store(c->id, undecided);
  if (!ask) decide(*c, undecided, id);
  if (fresh) {
    ++g_used;
    store(c->function, function);
  }
  return c;
}

}  // namespace

void switch_instrument_call(std::uintptr_t function, std::uint32_t id) {
  KARST_ASSERT(holds_patching());
  InstrumentedCall* c = entry_of(function);
  if (c == nullptr || load(c->function) != function || load(c->known_id) != id) return;
  const std::uint32_t is = load(c->id);
  if (is < kUndecided) exchange_if(c->id, is, id_if_on(id));
}

bool prepare_instrument_calls() {
  if (karst_calls != nullptr) {
    if (g_outside == 0) return true;
    const Locked lock(g_lock);
    for (std::uint32_t i = 0; i < kPlaces; ++i)
      if (karst_calls[i].function != 0 && karst_calls[i].known_id == 0) store(karst_calls[i].id, kUndecided);
    g_outside = 0;
    return true;
  }
  static std::uint32_t s_begun;
  if (!exchange_if(s_begun, 0U, 1U)) return true;  // by another thread, at this moment; or it failed, and was said
  const long table = sys::mmap(0, sizeof(InstrumentedCall) * kPlaces, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(table) || !g_lock.create()) {
    Message().text("code built with -finstrument-functions is not traced: there is not enough memory for its table");
    return false;
  }
  store(karst_calls, reinterpret_cast<InstrumentedCall*>(table));
  return true;
}

void forget_instrument_calls(std::uintptr_t text_begin, std::uintptr_t text_end) {
  if (karst_calls == nullptr) return;
  const Locked lock(g_lock);
  const std::uint32_t count = g_arena.function_count();
  for (std::uint32_t id = 1; id <= count; ++id) {
    const std::uint64_t function = g_arena.functions()[id].address;
    if (function < text_begin || function >= text_end) continue;
    InstrumentedCall* c = entry_of(function);
    if (c != nullptr && c->function == function) store(c->id, kUndecided);
  }
}

std::uint32_t find_instrument_call(std::uintptr_t function) {
  const InstrumentedCall* c = entry_of(function);
  if (c == nullptr || load(c->function) != function) return 0;
  const std::uint32_t id = load(c->id);
  return id < kUndecided ? id : 0;
}

extern "C" std::uint32_t karst_find_call(std::uint64_t function) {
  const InstrumentedCall* found = entry_of(function);
  if (found != nullptr && load(found->function) == function && load(found->id) < kUndecided) return load(found->id);
  // Signals wait: a handler may call the same function, while the session is asked about it.
  const OverheadTime time(format::Overhead::kName);
  const sys::SignalsBlocked guard;
  if (!g_arena.exists() || !own_arena()) return 0;
  if (load(karst_calls) == nullptr) prepare_instrument_calls();  // a module that came unseen
  if (load(karst_calls) == nullptr) return 0;
  // The dynamic linker is asked before the lock is taken, as it may call us with a lock of its own.
  const bool is_foreign = module_at(function) == nullptr;
  const bool is_generated = is_foreign && !is_in_any_module(function);
  if (is_foreign && !is_generated && !enter_plain_module(function)) say_if_came_unseen(function);
  InstrumentedCall* c = insert(function, is_generated);
  if (c == nullptr) return 0;
  const std::uint32_t id = load(c->id);
  if (id < kUndecided) return id;
  // Every thread that comes before the answer asks for itself, so that none ever waits for another.
  ask_session_about(id - kUndecided);
  return decide(*c, id, id - kUndecided);
}

}  // namespace karst::runtime
