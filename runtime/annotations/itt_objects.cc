// SPDX-License-Identifier: MIT
// ITT's objects: domains, texts, counters, events, and the locks whose waiting it tells. Each is what its name is kept
// as, so the same name has the same object; the program may also have made some itself, before it loaded us.
#include "runtime/annotations/itt.h"
#include "runtime/annotations/open_zones.h"
#include "runtime/clock/clock.h"
#include "runtime/system/memory.h"

namespace karst::runtime::itt {
namespace {

using format::NoteKind;

// One more, for what has no room: of a domain that says nothing.
Domain g_domains[kMostKeptTexts + 1];
Text g_texts[kMostKeptTexts + 1];
Counter g_counters[kMostKeptTexts + 1];

std::uint32_t place_of(const KeptText* kept) { return kept != nullptr ? number_of(*kept) : kMostKeptTexts; }
const char* name_of(const KeptText* kept) { return kept != nullptr ? kept->name.name : ""; }

Domain* domain_create(const char* name) {
  const KeptText* const kept = keep_text({}, said(name));
  Domain& domain = g_domains[place_of(kept)];
  if (load(domain.name) != nullptr) return &domain;
  domain.flags = kept != nullptr ? 1 : 0;
  store(domain.name, name_of(kept));
  return &domain;
}

Text* string_handle_create(const char* text) {
  const KeptText* const kept = keep_text({}, said(text));
  Text& handle = g_texts[place_of(kept)];
  store(handle.text, kept != nullptr ? kept->name.name : "(further ITT names)");
  return &handle;
}

void thread_set_name(const char* name) { karst_api_thread_set_name(name); }
int thr_name_set(const char* name, int) {
  karst_api_thread_set_name(name);
  return 0;
}

unsigned long long get_timestamp() { return event_time(); }

// ---- counters -----------------------------------------------------------------------------------

Counter* make_counter(Said domain, const char* name, int type) {
  KeptText* const kept = keep_text(domain, said(name));
  Counter& counter = g_counters[place_of(kept)];
  counter.type = type;
  store(counter.name, name_of(kept));  // the domain is in it
  return &counter;
}
Counter* counter_create(const char* name, const char* domain) {
  return make_counter(said(domain), name, static_cast<int>(Type::kU64));
}
Counter* counter_create_typed(const char* name, const char* domain, int type) {
  return make_counter(said(domain), name, type);
}
Counter* counter_create_v3(const Domain* domain, const char* name, int type) {
  return make_counter(itt::name_of(domain), name, type);
}

KeptText* counted(const Counter* counter) {
  if (counter == nullptr || !is_heard()) return nullptr;
  return keep_text(said(counter->domain), said(counter->name));
}

void set_counter(const Counter* counter, const void* value) {
  KeptText* const kept = counted(counter);
  if (kept == nullptr || value == nullptr) return;
  const auto type = static_cast<Type>(counter->type);
  if (std::uint64_t bits = 0; read_integer(type, value, bits)) store(kept->value, bits);
  say_number(&kept->name, type, value);
}
void counter_set_value(const Counter* counter, const void* value) { set_counter(counter, value); }
void counter_set_value_v3(const Counter* counter, const void* value) { set_counter(counter, value); }
void counter_set_value_ex(const Counter* counter, void*, unsigned long long, const void* value) {
  set_counter(counter, value);
}

void add_to(KeptText* kept, std::uint64_t delta) {
  if (kept == nullptr) return;
  const std::uint64_t now = __atomic_add_fetch(&kept->value, delta, __ATOMIC_ACQ_REL);
  karst_api_integer(&kept->name, static_cast<std::int64_t>(now));
}
void counter_inc(const Counter* counter) { add_to(counted(counter), 1); }
void counter_dec(const Counter* counter) { add_to(counted(counter), ~std::uint64_t{0}); }
void counter_inc_delta(const Counter* counter, unsigned long long delta) { add_to(counted(counter), delta); }
void counter_dec_delta(const Counter* counter, unsigned long long delta) { add_to(counted(counter), 0 - delta); }

KeptText* counted_name(const Domain* domain, const Text* name) {
  return is_heard() ? keep_text(itt::name_of(domain), text_of(name)) : nullptr;
}
void counter_inc_v3(const Domain* domain, const Text* name) { add_to(counted_name(domain, name), 1); }
void counter_dec_v3(const Domain* domain, const Text* name) { add_to(counted_name(domain, name), ~std::uint64_t{0}); }
void counter_inc_delta_v3(const Domain* domain, const Text* name, unsigned long long delta) {
  add_to(counted_name(domain, name), delta);
}
void counter_dec_delta_v3(const Domain* domain, const Text* name, unsigned long long delta) {
  add_to(counted_name(domain, name), 0 - delta);
}

// ---- events and marks: numbers of their names, from 1 on ------------------------------------------

int mark_create(const char* name) { return static_cast<int>(place_of(keep_text({}, said(name)))) + 1; }
int event_create(const char* name, int length) {
  return static_cast<int>(place_of(keep_text({}, said(name, length > 0 ? static_cast<unsigned>(length) : 0)))) + 1;
}
int say_event(int event, Said more) {
  const KeptText* const kept = kept_text_of(static_cast<std::uint32_t>(event) - 1);
  if (kept != nullptr) say(NoteKind::kMessage, said(*kept), more.size != 0 ? Said{" ", 1} : Said(), more);
  return 0;
}
int event_start(int event) { return say_event(event, {}); }
int event_end(int event) { return say_event(event, {"ends", 4}); }
int mark(int type, const char* parameter) { return say_event(type, said(parameter)); }

void pause() { say(NoteKind::kMessage, {}, {}, said("ITT: pause")); }
void resume() { say(NoteKind::kMessage, {}, {}, said("ITT: resume")); }

// ---- locks: what a thread does from sync_prepare to sync_acquired or sync_cancel is a zone ---------

struct Lock {
  const void* address;  ///< null: free
  NoteName* name;       ///< null: it was destroyed; the place waits for a lock of the same address
};
constexpr std::uint32_t kMostLocks = 4096;
constexpr std::uint32_t kMostSteps = 64;
Lock g_locks[kMostLocks];
NoteName g_wait{"wait for a lock", nullptr, 0, 0};

Lock* lock_at(const void* address, bool make) {
  if (address == nullptr) return nullptr;
  const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(address) * 0x9e3779b97f4a7c15ULL >> 40;
  for (std::uint32_t i = 0; i < kMostSteps; ++i) {
    Lock& lock = g_locks[(hash + i) % kMostLocks];
    const void* there = load(lock.address);
    if (there == nullptr) {
      if (!make) return nullptr;
      if (exchange_if(lock.address, static_cast<const void*>(nullptr), address)) return &lock;
      there = load(lock.address);
    }
    if (there == address) return &lock;
  }
  return nullptr;
}

void name_lock(const void* address, const char* type, const char* name) {
  char text[kLongestKeptText / 2];
  std::uint32_t size = 0;
  const auto add = [&](Said s) {
    for (std::uint32_t i = 0; i < s.size && size < sizeof text; ++i) text[size++] = s.data[i];
  };
  add(said("wait for "));
  add(said(type));
  if (said(type).size != 0 && said(name).size != 0) add(said(" "));
  add(said(name));
  Lock* const lock = lock_at(address, true);
  KeptText* const kept = lock != nullptr ? keep_text({}, {text, size}) : nullptr;
  if (kept != nullptr) store(lock->name, &kept->name);
}

void sync_create(const void* address, const char* type, const char* name, int) { name_lock(address, type, name); }
void sync_rename(const void* address, const char* name) { name_lock(address, nullptr, name); }
void sync_destroy(const void* address) {
  if (Lock* const lock = lock_at(address, false)) store(lock->name, static_cast<NoteName*>(nullptr));
}

NoteName* wait_name(const void* address) {
  if (!is_heard()) return nullptr;
  const Lock* const lock = lock_at(address, false);
  NoteName* const name = lock != nullptr ? load(lock->name) : nullptr;
  return name != nullptr ? name : &g_wait;
}
void sync_prepare(const void* address) { karst_api_zone_enter(open_zone(wait_name(address), address)); }
void sync_acquired(const void* address) { karst_api_zone_leave(close_zone(address)); }

}  // namespace

bool read_integer(Type type, const void* value, std::uint64_t& result) {
  const auto read = [&](auto typed) {
    __builtin_memcpy(&typed, value, sizeof typed);
    result = static_cast<std::uint64_t>(static_cast<std::int64_t>(typed));
    return true;
  };
  switch (type) {
    case Type::kU64:
      return read(std::uint64_t{});
    case Type::kS64:
      return read(std::int64_t{});
    case Type::kU32:
      return read(std::uint32_t{});
    case Type::kS32:
      return read(std::int32_t{});
    case Type::kU16:
      return read(std::uint16_t{});
    case Type::kS16:
      return read(std::int16_t{});
    case Type::kFloat:
    case Type::kDouble:
      break;
  }
  return false;
}

void say_number(NoteName* name, Type type, const void* value) {
  std::uint64_t bits = 0;
  if (read_integer(type, value, bits)) return karst_api_integer(name, static_cast<std::int64_t>(bits));
  if (type == Type::kFloat) {
    std::uint32_t single = 0;
    __builtin_memcpy(&single, value, sizeof single);
    return karst_api_number(name, double_of_float(single));
  }
  if (type != Type::kDouble) return;
  __builtin_memcpy(&bits, value, sizeof bits);
  karst_api_number(name, bits);
}

Functions object_functions() {
#define KARST_ITT(name) \
  { #name, reinterpret_cast < void*>(name) }
  static const Known known[] = {
      KARST_ITT(domain_create),
      KARST_ITT(string_handle_create),
      KARST_ITT(thread_set_name),
      KARST_ITT(thr_name_set),
      KARST_ITT(get_timestamp),
      KARST_ITT(counter_create),
      KARST_ITT(counter_create_typed),
      KARST_ITT(counter_create_v3),
      KARST_ITT(counter_set_value),
      KARST_ITT(counter_set_value_v3),
      KARST_ITT(counter_set_value_ex),
      KARST_ITT(counter_inc),
      KARST_ITT(counter_dec),
      KARST_ITT(counter_inc_delta),
      KARST_ITT(counter_dec_delta),
      KARST_ITT(counter_inc_v3),
      KARST_ITT(counter_dec_v3),
      KARST_ITT(counter_inc_delta_v3),
      KARST_ITT(counter_dec_delta_v3),
      KARST_ITT(mark_create),
      KARST_ITT(mark),
      {"mark_global", reinterpret_cast<void*>(mark)},
      KARST_ITT(event_create),
      KARST_ITT(event_start),
      KARST_ITT(event_end),
      KARST_ITT(pause),
      KARST_ITT(resume),
      KARST_ITT(sync_create),
      KARST_ITT(sync_rename),
      KARST_ITT(sync_destroy),
      KARST_ITT(sync_prepare),
      KARST_ITT(sync_acquired),
      {"sync_cancel", reinterpret_cast<void*>(sync_acquired)},
  };
#undef KARST_ITT
  return {known, sizeof known / sizeof known[0]};
}

}  // namespace karst::runtime::itt
