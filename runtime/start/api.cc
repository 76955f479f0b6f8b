// SPDX-License-Identifier: MIT
// What include/karst/karst.h declares. Each function finds out first whether this process is traced; a forked child
// gets an arena of its own by that, as it would by its first traced call.
#include <errno.h>
#include <time.h>

#include "runtime/clock/clock.h"
#include "runtime/maintenance/control.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/snapshots/snapshot.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"
#include "runtime/timing/rate.h"

namespace karst::runtime {
namespace {

constexpr std::uint32_t kLongestName = 64 << 10;

bool is_traced() { return g_arena.exists() && own_arena(); }

std::uint64_t now() { return event_time(); }

SnapshotRequest request_since(std::uint64_t since, const char* text = "the program's own") {
  return {since, now(), format::MomentKind::kSnapshot, text};
}

/// Two words that no signal handler of the same thread may see half of.
int give_name(format::ArenaThread& t, const char* name, std::uint32_t size) {
  const sys::SignalsBlocked guard;
  store(t.given_name_size, 0U);
  if (size == 0) return 0;
  if (size > t.given_name_space) {
    // Names that grow step by step shall not use up the text.
    const auto space = static_cast<std::uint32_t>(align_up(size + size / 2, 32));
    const std::uint32_t offset = g_arena.take_text(space);
    if (offset == 0) return -ENOMEM;
    t.given_name = offset;
    t.given_name_space = space;
  }
  char* text = g_arena.text(t.given_name, size);
  if (text == nullptr) return -EFAULT;
  copy(text, name, size);
  store(t.given_name_size, size);
  return 0;
}

/// By the maintenance process: this one may be a signal handler's, and hold any lock.
int switch_all(bool on) {
  if (!has_maintenance()) return -EOPNOTSUPP;
  format::ArenaControl& c = g_arena.control();
  store(c.enabled, on ? 1U : 0U);
  const std::uint32_t wanted = load(c.request) + 1;
  wake_maintenance();
  constexpr long kStep = 20'000'000;  // ns; the word may change before one sleeps on it
  for (int step = 0; step < 50; ++step) {
    const std::uint32_t applied = load(c.applied);
    if (static_cast<std::int32_t>(applied - wanted) >= 0)
      return load(c.outcome) == static_cast<std::uint32_t>(format::ControlOutcome::kRefused) ? -EACCES : 0;
    const timespec limit{0, kStep};
    sys::call(SYS_futex, sys::word(&c.applied), FUTEX_WAIT, applied, sys::word(&limit));
  }
  return -ETIMEDOUT;
}

}  // namespace
}  // namespace karst::runtime

using namespace karst;
using namespace karst::runtime;

// The header's stubs have these names already, so they look for others.
#define KARST_EXPORT extern "C" __attribute__((visibility("default")))

KARST_EXPORT std::uint64_t karst_time() { return now(); }

KARST_EXPORT std::uint64_t karst_ticks_per_second() { return is_traced() ? tsc_rate().ticks_per_second : 0; }

KARST_EXPORT Snapshot* karst_snapshot_since(std::uint64_t time) {
  return is_traced() ? take_snapshot(request_since(time)) : nullptr;
}

KARST_EXPORT Snapshot* karst_snapshot_last(std::uint64_t ticks) {
  if (!is_traced()) return nullptr;
  const std::uint64_t time = now();
  return take_snapshot(request_since(ticks < time ? time - ticks : 0));
}

KARST_EXPORT Snapshot* karst_snapshot_all() { return is_traced() ? take_snapshot(request_since(0)) : nullptr; }

KARST_EXPORT std::uint64_t karst_snapshot_whole_from(const Snapshot* snapshot) {
  return snapshot != nullptr ? whole_from(*snapshot) : 0;
}

KARST_EXPORT int karst_snapshot_write(const Snapshot* snapshot, const char* path) {
  if (snapshot == nullptr || path == nullptr) return -EINVAL;
  return is_traced() ? write_snapshot(*snapshot, path) : -ENOSYS;
}

KARST_EXPORT void karst_snapshot_free(Snapshot* snapshot) { free_snapshot(snapshot); }

KARST_EXPORT int karst_snapshot_save(const char* path, std::uint64_t since) {
  if (path == nullptr) return -EINVAL;
  return is_traced() ? save_snapshot(request_since(since), path) : -ENOSYS;
}

KARST_EXPORT int karst_snapshot_set_text(Snapshot* snapshot, const char* text) {
  if (snapshot == nullptr || text == nullptr || *text == '\0') return -EINVAL;
  set_text(*snapshot, text);
  return 0;
}

KARST_EXPORT int karst_snapshot_save_text(const char* path, std::uint64_t since, const char* text) {
  if (path == nullptr || text == nullptr || *text == '\0') return -EINVAL;
  char kept[kMostSnapshotText];
  copy_text(kept, text);
  return is_traced() ? save_snapshot(request_since(since, kept), path) : -ENOSYS;
}

KARST_EXPORT int karst_thread_ignore() {
  if (!is_traced()) return -ENOSYS;
  ignore_thread();
  return 0;
}

KARST_EXPORT int karst_thread_set_name(const char* name) {
  if (!is_traced()) return -ENOSYS;
  ThreadState* state = own_state();
  if (state == nullptr) return -ENOMEM;
  const std::size_t size = name == nullptr ? 0 : length(name);
  return give_name(g_arena.thread(state->thread), name,
                   static_cast<std::uint32_t>(size < kLongestName ? size : kLongestName));
}

KARST_EXPORT int karst_thread_set_history(std::uint64_t bytes) {
  if (!is_traced()) return -ENOSYS;
  ThreadState* state = own_state();
  if (state == nullptr) return -ENOMEM;
  // One more: the block that the thread writes to is about half full.
  const std::uint64_t blocks = bytes == 0 ? 0 : align_up(bytes, format::kBlockSize) / format::kBlockSize + 1;
  return blocks <= 0xffffffffU && set_history_floor(*state, static_cast<std::uint32_t>(blocks)) ? 0 : -ENOMEM;
}

KARST_EXPORT int karst_enable() { return is_traced() ? switch_all(true) : -ENOSYS; }

KARST_EXPORT int karst_disable() { return is_traced() ? switch_all(false) : -ENOSYS; }

#define KARST_ALIAS(name) \
  extern "C" __attribute__((visibility("default"), alias("karst_" #name))) decltype(karst_##name) karst_api_##name

KARST_ALIAS(time);
KARST_ALIAS(enable);
KARST_ALIAS(disable);
KARST_ALIAS(ticks_per_second);
KARST_ALIAS(snapshot_since);
KARST_ALIAS(snapshot_last);
KARST_ALIAS(snapshot_all);
KARST_ALIAS(snapshot_whole_from);
KARST_ALIAS(snapshot_write);
KARST_ALIAS(snapshot_free);
KARST_ALIAS(snapshot_save);
KARST_ALIAS(snapshot_set_text);
KARST_ALIAS(snapshot_save_text);
KARST_ALIAS(thread_ignore);
KARST_ALIAS(thread_set_name);
KARST_ALIAS(thread_set_history);
