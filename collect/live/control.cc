// SPDX-License-Identifier: MIT
#include "collect/live/control.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <thread>
#include <utility>

#include "arch/cpu.h"
#include "arch/shared_word.h"

namespace karst::collect {

using format::ArenaControl;
using format::ControlOutcome;
using format::ControlThread;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds kPatience{5000};  // with another karst
constexpr milliseconds kStep{50};

using arch::load;
using arch::store;

std::string described(const Attached& a) {
  return "process " + std::to_string(a.process.pid) + " (" + a.process.name + ")";
}

bool is_alive(std::uint32_t pid) {
  return pid != 0 && pid <= 0x7fffffffU && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

/// Empty when it may answer yet.
std::string why_silent(const Attached& target) {
  const auto now = process_facts(target.held);
  if (!now || now->state == 'Z' || now->state == 'X') return described(target) + " has ended";
  if (now->state == 'T' || now->state == 't')
    return described(target) +
           (now->state == 'T' ? " is stopped (kill -CONT lets it go on)" : " is stopped by a debugger") +
           ": what was asked for is done when it goes on";
  return {};
}

const char* why_uncontrollable(ControlThread state) {
  return state == ControlThread::kStopped ? "its thread for such requests had to go: the program asked for what a "
                                            "process of several threads cannot have, "
                                            "or for a seccomp filter"
                                          : "it has no thread for such requests (control=0, or none could be made)";
}

}  // namespace

ControlState control_state(const ArenaView& arena) {
  const ArenaControl c = arena.control_now();
  ControlState s;
  s.enabled = c.enabled != 0;
  s.thread = static_cast<ControlThread>(c.thread);
  s.controllable = s.thread == ControlThread::kRunning;
  const std::vector<std::uint32_t> all_flags = arena.all_function_flags();
  for (const std::uint32_t flags : std::span(all_flags).subspan(1)) {
    if ((flags & format::kArenaFunctionTailExit) != 0) continue;
    ++s.functions;
    if ((flags & format::kArenaFunctionOn) != 0) ++s.chosen;
    if ((flags & format::kArenaFunctionCulled) != 0) ++s.culled;
    constexpr std::uint32_t kTraced = format::kArenaFunctionOn | format::kArenaFunctionCulled;
    if (s.enabled && (flags & kTraced) == format::kArenaFunctionOn) ++s.patched;
  }
  s.sites = c.patched_sites;
  s.unpatchable_sites = c.unpatchable_sites;
  s.given_back = c.given_back;
  if (c.cost_ppm != ~std::uint32_t{0}) s.cost_ppm = c.cost_ppm;
  s.budget_ppm = c.budget_ppm;
  s.switches = c.switch_count;
  s.last_patch_ns = c.last_patch_ns;
  s.dropped_messages = c.dropped_messages;
  const std::uint64_t now = arch::time_stamp();
  s.off_in_ticks = c.off_at_ticks == 0 ? 0 : c.off_at_ticks > now ? c.off_at_ticks - now : 1;
  return s;
}

Result<Requester> Requester::take(Attached& target) {
  const auto writer = ArenaWriter::of(target.arena);
  if (!writer) return Error{described(target) + ": " + writer.error().message};
  ArenaControl& c = writer->control();
  const auto state = static_cast<ControlThread>(load(c.thread));
  if (state != ControlThread::kRunning)
    return Error{described(target) + " cannot be switched while it runs: " + why_uncontrollable(state)};
  if (const std::string why = why_silent(target); why.ends_with("has ended")) return Error{why};
  const auto self = static_cast<std::uint32_t>(getpid());
  const auto give_up = steady_clock::now() + kPatience;
  for (;;) {
    std::uint32_t holder = load(c.holder);
    if ((holder == 0 || holder == self || !is_alive(holder)) &&
        __atomic_compare_exchange_n(&c.holder, &holder, self, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return Requester(target, *writer);
    if (steady_clock::now() > give_up)
      return Error{"another karst (process " + std::to_string(holder) + ") is switching " + described(target) +
                   "; try again when it is done"};
    std::this_thread::sleep_for(milliseconds(10));
  }
}

Requester::Requester(Requester&& other) noexcept
    : target_(std::exchange(other.target_, nullptr)), writer_(other.writer_) {}

Requester::~Requester() {
  if (target_ == nullptr) return;
  auto self = static_cast<std::uint32_t>(getpid());
  __atomic_compare_exchange_n(&writer_.control().holder, &self, 0U, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

std::vector<std::uint32_t> Requester::choose(const std::vector<std::uint32_t>& ids, bool on) {
  std::vector<std::uint32_t> changed;
  for (const std::uint32_t id : ids)
    if (id != 0 && id <= target_->arena.function_count() && writer_.choose(id, on)) changed.push_back(id);
  return changed;
}

void Requester::set_enabled(bool on) { store(writer_.control().enabled, on ? 1U : 0U); }
void Requester::set_new_functions(bool on) { store(writer_.control().new_functions, on ? 1U : 0U); }
Status Requester::set_budget(std::uint32_t ppm) {
  const ArenaView& arena = target_->arena;
  const char* why = !arena.counts().empty()           ? "its calls are counted, not traced"
                    : arena.min_duration_ticks() != 0 ? "it runs with --min-duration, and what short calls cost leaves "
                                                        "no trace to see it by"
                                                      : nullptr;
  if (why != nullptr && ppm != 0) return Error{described(*target_) + " cannot keep to a budget: " + why};
  store(writer_.control().budget_ppm, ppm);
  return Unit{};
}

void Requester::keep(const std::vector<std::uint32_t>& ids) {
  for (const std::uint32_t id : ids)
    if (id != 0 && id <= target_->arena.function_count()) writer_.keep(id);
}

void Requester::set_off_at(std::uint64_t ticks) { store(writer_.control().off_at_ticks, ticks); }

Status Requester::apply(milliseconds limit) {
  ArenaControl& c = writer_.control();
  const std::uint32_t mine = __atomic_add_fetch(&c.request, 1, __ATOMIC_ACQ_REL);
  syscall(SYS_futex, &c.request, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
  const auto give_up = steady_clock::now() + limit;
  for (;;) {
    const std::uint32_t applied = load(c.applied);
    if (static_cast<std::int32_t>(applied - mine) >= 0) break;
    constexpr timespec kWait{0, std::chrono::nanoseconds(kStep).count()};
    syscall(SYS_futex, &c.applied, FUTEX_WAIT, applied, &kWait, nullptr, 0);
    if (static_cast<std::int32_t>(load(c.applied) - mine) >= 0) break;
    if (std::string why = why_silent(*target_); !why.empty()) return Error{std::move(why)};
    const auto state = static_cast<ControlThread>(load(c.thread));
    if (steady_clock::now() > give_up) {
      if (state != ControlThread::kRunning)
        return Error{described(*target_) + " did not do it: " + why_uncontrollable(state)};
      return Error{described(*target_) + " has not done it within " + std::to_string(limit.count() / 1000) +
                   " s; it may do so yet (karst ps PID tells)"};
    }
  }
  if (load(c.outcome) == static_cast<std::uint32_t>(ControlOutcome::kRefused))
    return Error{described(*target_) +
                 " cannot be switched: the system does not let its code be changed while it runs, or memory is short"};
  return Unit{};
}

reader::Process with_names(const ArenaView& arena, const symbols::ResolveOptions& resolve) {
  reader::Process process = arena.process();
  symbols::resolve(process, resolve);
  return process;
}

std::vector<std::uint32_t> matching_functions(const reader::Process& named, const choice::FunctionFilter& filter) {
  std::vector<std::uint32_t> ids;
  for (const reader::Function& f : named.functions)
    if (f.id != 0 && filter.keeps(f.name)) ids.push_back(f.id);
  return ids;
}

}  // namespace karst::collect
