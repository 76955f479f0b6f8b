// SPDX-License-Identifier: MIT
// Before a fork the parent notes who it is; after it the child stands on empty memory until its first event. Then one
// thread makes the child's arena while others wait (own_arena).
#include "runtime/process/fork.h"

#include <pthread.h>

#include "runtime/clock/clock.h"
#include "runtime/counting/count.h"
#include "runtime/maintenance/control.h"
#include "runtime/process/session.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/system/assertion.h"
#include "runtime/system/forked.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/patch_lock.h"
#include "runtime/system/syscalls.h"
#include "runtime/timing/clock_thread.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr auto kUnknown = static_cast<std::uint32_t>(ArenaLife::kUnknown);
constexpr auto kOwn = static_cast<std::uint32_t>(ArenaLife::kOwn);
constexpr auto kAdopting = static_cast<std::uint32_t>(ArenaLife::kAdopting);
constexpr auto kUntraced = static_cast<std::uint32_t>(ArenaLife::kUntraced);

bool g_leave_children;  // forked children are not traced
bool g_gave_up;         // this process or one before it was not

// What a fork was about, as the thread that forked knew it: taken over by in_child().
struct Fork {
  ForkOrigin origin;
  std::uint32_t parent;
};
__attribute__((tls_model("initial-exec"))) __thread Fork t_fork;

// How this process came to be, if it was by a fork that we saw.
Fork g_fork;
std::uint32_t g_forked_pid;  // 0: it was not

std::uint32_t own_pid() { return static_cast<std::uint32_t>(sys::getpid()); }
std::uint32_t own_tid() { return static_cast<std::uint32_t>(sys::gettid()); }

ForkOrigin origin_in(std::uint32_t tid, std::uint64_t ticks) {
  return {g_arena.remembered().start_ticks, g_arena.remembered().pid, tid, ticks};
}

void before_fork() {
  hold_patching();
  const std::uint32_t pid = own_pid();
  t_fork.parent = pid;
  if (!in_forked_child()) {
    g_arena.remember();
    t_fork.origin = origin_in(own_tid(), event_time());
    wait_for_later_than(t_fork.origin.ticks);
  } else if (g_forked_pid == pid && own_tid() == pid) {
    t_fork.origin = g_fork.origin;  // nothing has been recorded since: the grandchild comes from there
  } else {
    t_fork.origin = origin_in(0, 0);
  }
}

void give_up() {
  g_gave_up = true;
  stop_recording();
  g_arena.let_go();
  store(*arena_life(), kUntraced);
}

void in_parent() { release_patching(); }

void in_child() {
  g_fork = t_fork;
  g_forked_pid = own_pid();
  forget_thread();
  if (g_gave_up || g_leave_children)
    give_up();
  else
    g_arena.stand_in();
}

bool adopt() {
  const bool seen = g_forked_pid == own_pid();
  const ForkOrigin origin = seen ? g_fork.origin : origin_in(own_tid(), 0);
  if (g_gave_up || g_leave_children) return false;
  if (const char* why = g_arena.create_in_child()) {
    Message().text("process ").number(own_pid()).text(", a forked child, runs untraced: ").text(why);
    return false;
  }
  ArenaHeader& h = g_arena.header();
  h.pid = own_pid();
  h.parent_pid = seen ? g_fork.parent : static_cast<std::uint32_t>(sys::getppid());
  note_start_time(h);
  g_arena.remember();
  if (!renew_threads(seen)) {
    Message().text("process ").number(own_pid()).text(", a forked child, runs untraced: memory is short");
    return false;
  }
  renew_watches();
  renew_counts();
  renew_clock_thread();
  const Heard heard = report_fork(h.module_count, g_arena.descriptor(), origin);
  if (heard == Heard::kRefused)
    Message().text("process ").number(own_pid()).text(", a forked child, runs untraced: ").text(kWhyRefused);
  // When `karst run` is gone nobody asks for this trace any more, unless it is kept in a file.
  if (heard == Heard::kRefused || (heard == Heard::kNobody && !g_arena.lies_in_file())) return false;
  // Nobody who takes what the parent records knows of this process.
  if (heard != Heard::kYes || !has_session()) store(g_arena.control().blocking, 0U);
  renew_maintenance();
  return true;
}

}  // namespace

bool follow_forks(const Options& options) {
  if (!own_arena_from_now_on()) return false;
  // Under prefault=1 hooks make no system call, which an arena takes many of.
  g_leave_children = options.prefault || !options.follow;
  // Registered before all others of the program: called last before a fork, and first in the child.
  pthread_atfork(before_fork, in_parent, in_child);
  return true;
}

bool own_arena() {
  if (arena_life() == nullptr) return false;
  std::uint32_t& word = *arena_life();
  std::uint32_t life = load(word);
  if (life == kOwn || life == kUntraced) return life == kOwn;
  const sys::SignalsBlocked guard;
  for (;;) {
    life = load(word);
    if (life == kOwn || life == kUntraced) return life == kOwn;
    if (life == kAdopting) {
      sys::call(SYS_futex, sys::word(&word), FUTEX_WAIT_PRIVATE, kAdopting, 0);
      continue;
    }
    if (!exchange_if(word, kUnknown, kAdopting)) continue;
    const bool done = adopt();
    KARST_ASSERT(load(word) == kAdopting);
    if (done)
      store(word, kOwn);
    else
      give_up();
    sys::call(SYS_futex, sys::word(&word), FUTEX_WAKE_PRIVATE, 0x7fffffff);
    return done;
  }
}

void note_clone() {
  t_fork.parent = own_pid();
  if (!in_forked_child()) g_arena.remember();
  t_fork.origin = origin_in(0, event_time());
}

void in_cloned_child() { in_child(); }

}  // namespace karst::runtime
