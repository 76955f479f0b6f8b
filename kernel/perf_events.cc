// SPDX-License-Identifier: MIT
#include "kernel/perf_events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/fork_lock.h"
#include "format/trace.h"
#include "kernel/cpus.h"
#include "kernel/present_threads.h"

namespace karst::kernel {
namespace {

constexpr std::size_t kSmallestRing = 8;  // pages
constexpr std::size_t kLargestRing = 64;  // with its page of control, half of what one user may lock a CPU by default

/// A storm of faults has thousands. One record for each would make each of them dearer.
constexpr std::uint32_t kFaultsPerRecord = 16;
/// Descriptors: a thread that is there already needs one for each CPU.
constexpr std::size_t kMostFaultEvents = 256;

/// Without the kernel's own time, which kernel.perf_event_paranoid 2 forbids; a tracepoint is of the kernel.
int open_event(perf_event_attr attributes, pid_t pid, int cpu) {
  attributes.exclude_kernel = attributes.type != PERF_TYPE_TRACEPOINT;
  return open_perf_event(attributes, pid, cpu);
}

/// Closes events of a tracepoint in a process of its own, which ends then. With the last one of all, the kernel waits
/// for all CPUs (RCU), some 40 ms; nobody is to wait for that.
void close_elsewhere(const std::vector<int>& events) {
  if (events.empty()) return;
  // Who closes them last waits. So that one closes them when nobody else has the gate any more, and all have closed
  // them.
  int gate[2];
  if (pipe2(gate, O_CLOEXEC) != 0) gate[0] = gate[1] = -1;
  pid_t child = -1;
  {
    const std::lock_guard alone(fork_lock());
    child = fork();
  }
  if (child == 0) {
    if (fork() != 0) _exit(0);  // whose parent is init then
    if (gate[1] >= 0) close(gate[1]);
    unsigned next = 0;
    std::vector<int> kept = events;
    if (gate[0] >= 0) kept.push_back(gate[0]);
    std::sort(kept.begin(), kept.end());
    for (const int event : kept) {
      if (static_cast<unsigned>(event) > next) close_range(next, static_cast<unsigned>(event) - 1, 0);
      next = static_cast<unsigned>(event) + 1;
    }
    close_range(next, ~0U, 0);
    constexpr int kLongestMs = 1000;
    pollfd opened{gate[0], POLLIN, 0};
    if (gate[0] >= 0) poll(&opened, 1, kLongestMs);
    _exit(0);
  }
  for (const int event : events) close(event);
  for (const int end : gate)
    if (end >= 0) close(end);
  if (child > 0) waitpid(child, nullptr, 0);
}

}  // namespace

FaultCounter::FaultCounter(pid_t program) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_PAGE_FAULTS;
  event_ = Descriptor(open_event(attributes, program, -1));
}

std::uint64_t FaultCounter::read() const {
  std::uint64_t count = 0;
  return event_ && ::read(event_.get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count) ? count : 0;
}

bool PerfEvents::open_rings(const perf_event_attr& attributes, pid_t thread) {
  for (const std::uint16_t cpu : online_cpus()) {
    const int fd = open_event(attributes, thread, cpu);
    if (fd >= 0) rings_.push_back({{fd, cpu, nullptr, 0}, 0, false});
    if (fd < 0 && errno != ENODEV && errno != ENXIO) return false;  // else it went offline
  }
  return true;
}

Status PerfEvents::open_thread(const perf_event_attr& attributes, pid_t thread) {
  for (const Ring& ring : rings_)
    if (Status opened = open_beside(attributes, thread, ring, others_); !opened) return opened;
  return Unit{};
}

void PerfEvents::record_faults(pid_t thread) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_PAGE_FAULTS;
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attributes.sample_period = kFaultsPerRecord;
  attributes.exclude_kernel = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC_RAW;
  for (const Ring& ring : rings_)
    if (const Status opened = open_beside(attributes, thread, ring, others_); !opened) return;
  tells_faults_ = true;
}

Result<std::unique_ptr<PerfEvents>> PerfEvents::open(pid_t program, bool running, PerfRole role, std::size_t bytes,
                                                     RecordStore& store) {
  std::unique_ptr<PerfEvents> made(new PerfEvents(role));
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attributes.sample_id_all = 1;
  attributes.exclude_kernel = 1;  // which kernel.perf_event_paranoid 2 forbids
  attributes.context_switch = 1;
  attributes.task = role == PerfRole::kAlone ? 1 : 0;
  attributes.comm = role == PerfRole::kAlone ? 1 : 0;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC_RAW;
  attributes.watermark = 1;
  const auto cpus = online_cpus();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t each =
      std::clamp(std::bit_floor(std::max<std::size_t>(bytes / page / std::max<std::size_t>(1, cpus.size()), 1)),
                 kSmallestRing, kLargestRing);
  attributes.wakeup_watermark = static_cast<std::uint32_t>(each * page / 4);
  std::set<pid_t> known;
  std::vector<pid_t> threads = running ? new_threads(program, known, store) : std::vector<pid_t>{program};
  std::vector<pid_t> with_rings;
  // A thread may end before its events are there.
  while (made->rings_.empty() && !threads.empty()) {
    const pid_t first = threads.back();
    if (!made->open_rings(attributes, first)) {
      if (errno != ESRCH) return Error{why_perf_is_refused(errno)};
      for (Ring& ring : made->rings_) ring.close();
      made->rings_.clear();
    }
    threads.pop_back();
    if (!made->rings_.empty()) with_rings.push_back(first);
  }
  if (made->rings_.empty()) return Error{fmt::format("process {} has ended", program)};
  // Other programs' rings may have used up a part of what the user may lock.
  bool mapped = false;
  for (std::size_t pages = each; !mapped && pages >= kSmallestRing; pages /= 2) mapped = made->map(pages * page);
  if (!mapped)
    return Error{
        fmt::format("perf events have no memory left to write to (mmap: {}): raise kernel.perf_event_mlock_kb "
                    "or ulimit -l",
                    std::strerror(errno))};
  // Those that are made from here on inherit the events of their makers.
  while (!threads.empty()) {
    for (const pid_t thread : threads) {
      if (const Status opened = made->open_thread(attributes, thread); !opened) return opened.error();
      with_rings.push_back(thread);
    }
    threads = running ? new_threads(program, known, store) : std::vector<pid_t>{};
  }
  if (with_rings.size() * made->rings_.size() <= kMostFaultEvents)
    for (const pid_t thread : with_rings) made->record_faults(thread);
  for (Ring& ring : made->rings_) ring.last_ns = made->clock_.now().monotonic_raw_ns;
  store.add_of_run(static_cast<std::uint32_t>(program), static_cast<std::uint32_t>(program));
  return made;
}

Status PerfEvents::record_wakes(pid_t program, const TracefsPlace& place) {
  EventFormats formats(place);
  tep_event* const waking = formats.event("sched", "sched_waking");
  waker_ = formats.field(waking, "common_pid");
  flags_ = formats.field(waking, "common_flags");
  woken_ = formats.field(waking, "pid");
  if (!formats.missing().empty()) return Error{"sched_waking is not as we know it: " + formats.missing()};
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = EventFormats::id(waking);
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  attributes.sample_period = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC_RAW;
  for (const Ring& ring : rings_) {
    const int fd = open_event(attributes, program, ring.cpu);
    if (fd >= 0) wakes_.push_back(fd);
    if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring.fd) != 0) {
      const int error = errno;
      close_elsewhere(std::exchange(wakes_, {}));
      return Error{why_perf_is_refused(error)};
    }
  }
  return Unit{};
}

void PerfEvents::tell_beside_from(std::uint64_t ticks) {
  beside_from_ = ticks;
  note_forks_ = false;
  for (const int fd : wakes_) ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

PerfEvents::~PerfEvents() {
  close_elsewhere(wakes_);
  for (const int fd : others_) close(fd);
  for (Ring& ring : rings_) ring.close();
}

bool PerfEvents::map(std::size_t bytes) {
  std::vector<PerfRing*> all;
  for (Ring& ring : rings_) all.push_back(&ring);
  return PerfRing::map_all(all, bytes);
}

void PerfEvents::add_descriptors(std::vector<pollfd>& to) const {
  for (const Ring& ring : rings_) to.push_back({ring.fd, POLLIN, 0});
}

std::uint64_t PerfEvents::drain(RecordStore& store) {
  clock_.read();
  for (Ring& ring : rings_) drain(ring, store);
  // What another CPU was just writing when we looked comes the next time.
  constexpr double kSlack = 3e7;  // ns
  return clock_.now().ticks - clock_.ticks_of(kSlack);
}

void PerfEvents::drain(Ring& ring, RecordStore& store) {
  const std::uint64_t taken = ring.drain(copy_, [&](std::span<const std::byte> record) { take(ring, record, store); });
  // The kernel says that it had to drop records when it writes the next one, which may never come.
  constexpr std::uint64_t kLongestRecord = 128;
  if (taken != 0) ring.was_full = taken + kLongestRecord > ring.room();
}

void PerfEvents::finish(RecordStore& store) {
  for (Ring& ring : rings_) {
    if (!ring.was_full) continue;
    store.add({clock_.ticks_at(ring.last_ns), 0, 0, 0, ring.cpu, format::kStateLostBegin, 0});
    store.add(
        {std::max(clock_.now().ticks, clock_.ticks_at(ring.last_ns)), 0, 0, 1, ring.cpu, format::kStateLostEnd, 0});
  }
}

// `made` has time, thread and CPU.
void PerfEvents::take_switch(format::StateRecord made, std::uint16_t misc, std::uint32_t pid, RecordStore& store) {
  using format::kUnknownTid;
  const std::uint32_t tid = made.tid;
  if (tid == 0 || tid == kUnknownTid) return;  // not in a namespace that we see
  made.kind = format::kStateLeaveCpu;
  if ((misc & PERF_RECORD_MISC_SWITCH_OUT) == 0) {
    made.tid = kUnknownTid;
    made.other = tid;
  } else if ((misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0) {
    made.value = std::uint32_t{format::kLeaveRunnable} | static_cast<unsigned char>('R');
  }
  if (made.ticks >= beside_from_) return store.add_beside(made);
  if (!store.is_of_run(tid)) store.add_of_run(tid, pid);
  store.add(made);
}

// `sample`: pid, tid, time, size of what follows, the kernel's record.
void PerfEvents::take_waking(const Ring& ring, std::span<const std::byte> sample, RecordStore& store) const {
  constexpr std::size_t kRecord = 20;
  if (sample.size() < kRecord) return;
  const std::uint64_t ticks = clock_.ticks_at(perf_value<std::uint64_t>(sample, 8));
  if (ticks >= beside_from_) return;  // ftrace's to tell
  const std::span<const std::byte> record = sample.subspan(kRecord);
  store.add({ticks, static_cast<std::uint32_t>(number_at(record, woken_)),
             static_cast<std::uint32_t>(number_at(record, waker_)),
             (number_at(record, flags_) & kInInterrupt) != 0 ? std::uint32_t{format::kWakingByInterrupt} : 0U, ring.cpu,
             format::kStateWaking, 0});
}

void PerfEvents::take(Ring& ring, std::span<const std::byte> record, RecordStore& store) {
  using format::kUnknownTid;
  const auto header = perf_value<perf_event_header>(record, 0);
  if (header.type == PERF_RECORD_SAMPLE) {
    const std::span<const std::byte> sample = record.subspan(std::min(record.size(), sizeof header));
    if (const auto ns = perf_value<std::uint64_t>(sample, 8); ns != 0) ring.last_ns = ns;
    constexpr std::size_t kOfFaults = 16;  // pid, tid, time
    if (sample.size() != kOfFaults) return take_waking(ring, sample, store);
    const auto tid = perf_value<std::uint32_t>(sample, 4);
    if (tid == 0 || tid == kUnknownTid) return;  // not in a namespace that we see
    return store.add({clock_.ticks_at(ring.last_ns), tid, 0, kFaultsPerRecord, ring.cpu, format::kStateFaults, 0});
  }
  // sample_id: pid, tid, time.
  if (record.size() < sizeof header + 16) return;
  const auto pid = perf_value<std::uint32_t>(record, record.size() - 16);
  const auto tid = perf_value<std::uint32_t>(record, record.size() - 12);
  const auto ns = perf_value<std::uint64_t>(record, record.size() - 8);
  const std::uint64_t before = ring.last_ns;
  if (ns != 0) ring.last_ns = ns;
  format::StateRecord made{clock_.ticks_at(ns), tid, kUnknownTid, 0, ring.cpu, 0, 0};
  if (header.type == PERF_RECORD_SWITCH) return take_switch(made, header.misc, pid, store);
  if ((header.type == PERF_RECORD_LOST ? clock_.ticks_at(before) : made.ticks) >= beside_from_)
    return;  // ftrace's to tell
  switch (header.type) {
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
      // pid, parent's pid, tid, parent's tid, time
      const auto of = perf_value<std::uint32_t>(record, sizeof header);
      made.tid = perf_value<std::uint32_t>(record, sizeof header + 8);
      if (made.tid == 0 || made.tid == kUnknownTid) return;
      const bool fork = header.type == PERF_RECORD_FORK;
      if (fork) {
        made.other = perf_value<std::uint32_t>(record, sizeof header + 12);
        made.value = of == perf_value<std::uint32_t>(record, sizeof header + 4) ? 1 : 0;
        if (note_forks_) forks_.push_back(made);
      }
      made.kind = fork ? format::kStateNewThread : format::kStateExit;
      break;
    }
    case PERF_RECORD_COMM: {
      const auto named = perf_value<std::uint32_t>(record, sizeof header + 4);
      const auto* text = reinterpret_cast<const char*>(record.data()) + sizeof header + 8;
      const std::size_t room = record.size() - std::min(record.size(), sizeof header + 8 + 16);
      if (!store.is_of_run(named)) store.add_of_run(named, perf_value<std::uint32_t>(record, sizeof header));
      store.name(named, std::string_view(text, strnlen(text, room)), false);
      return;
    }
    case PERF_RECORD_LOST: {
      format::StateRecord gap{clock_.ticks_at(before), 0, 0, 0, ring.cpu, format::kStateLostBegin, 0};
      store.add(gap);
      made.tid = 0;
      made.other = 0;
      made.value = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(perf_value<std::uint64_t>(record, sizeof header + 8), 0xffffffffU));
      made.kind = format::kStateLostEnd;
      break;
    }
    default:
      return;
  }
  store.add(made);
}

}  // namespace karst::kernel
