// SPDX-License-Identifier: MIT
#include "kernel/sample_events.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

#include "kernel/cpus.h"
#include "kernel/present_threads.h"

namespace karst::kernel {
namespace {

/// Of the stack's top, which the kernel copies; less where few samples fit a ring.
constexpr std::uint32_t kStackBytes = 16384;
constexpr std::uint32_t kLeastStackBytes = 8192;
constexpr std::size_t kRoomyRing = std::size_t{512} << 10;
constexpr std::size_t kLargestRing = std::size_t{4} << 20;  // a CPU's
constexpr std::size_t kAllRings = std::size_t{64} << 20;
constexpr std::size_t kSmallestRing = std::size_t{64} << 10;

/// Registers by the kernel's numbers (asm/perf_regs.h), in the order in which it writes them, as DWARF numbers them.
constexpr std::uint64_t kRegisterMask = 0xff01ff;
constexpr unsigned kDwarfNumbers[] = {0, 3, 2, 1, 4, 5, 6, 7, kInstructionPointer, 8, 9, 10, 11, 12, 13, 14, 15};

perf_event_attr attributes_for(std::uint32_t per_second, bool kernel, bool build_ids, std::size_t ring) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = 1'000'000'000 / per_second;
  attributes.sample_type =
      PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attributes.sample_regs_user = kRegisterMask;
  attributes.sample_stack_user = ring >= kRoomyRing ? kStackBytes : kLeastStackBytes;
  attributes.sample_id_all = 1;
  attributes.exclude_kernel = kernel ? 0 : 1;
  attributes.exclude_callchain_kernel = 1;
  attributes.mmap = 1;
  attributes.mmap2 = 1;
  attributes.build_id = build_ids ? 1 : 0;
  attributes.comm = 1;
  attributes.comm_exec = 1;
  attributes.task = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC_RAW;
  attributes.watermark = 1;
  attributes.wakeup_watermark = static_cast<std::uint32_t>(ring / 4);
  return attributes;
}

/// Of the event that samples threads as they leave their CPUs, each time.
perf_event_attr wait_attributes(perf_event_attr attributes) {
  attributes.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
  attributes.sample_period = 1;
  attributes.mmap = attributes.mmap2 = attributes.build_id = 0;
  attributes.comm = attributes.comm_exec = attributes.task = 0;
  return attributes;
}

std::vector<PerfRing*> pointers_to(std::vector<PerfRing>& rings) {
  std::vector<PerfRing*> all(rings.size());
  std::transform(rings.begin(), rings.end(), all.begin(), [](PerfRing& ring) { return &ring; });
  return all;
}

}  // namespace

void SampleEvents::close() {
  close_waits();
  for (const int fd : others_) ::close(fd);
  others_.clear();
  for (PerfRing& ring : rings_) ring.close();
  rings_.clear();
  owners_.clear();
}

void SampleEvents::note_event(int fd, pid_t thread) {
  std::uint64_t id = 0;
  if (ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0) owners_[id] = thread;
}

// Of the first thread that has not ended.
bool SampleEvents::open_rings(const std::vector<pid_t>& threads, const HeldProcess* held,
                              const perf_event_attr& attributes) {
  errno = ESRCH;
  for (const pid_t thread : threads) {
    close();
    bool is_gone = false;
    for (const std::uint16_t cpu : online_cpus()) {
      const int fd = open_perf_event(attributes, thread, cpu);
      is_gone = (fd < 0 && errno == ESRCH) || (held != nullptr && !held->has_thread(thread));
      if (is_gone && fd >= 0) ::close(fd);
      errno = is_gone ? ESRCH : errno;
      if (is_gone) break;
      if (fd < 0 && errno != ENODEV && errno != ENXIO) return false;  // else it went offline
      if (fd < 0) continue;
      rings_.push_back({fd, cpu, nullptr, 0});
      note_event(fd, thread);
    }
    if (!is_gone) threads_.insert(thread);
    if (!is_gone) return true;
  }
  return false;
}

Status SampleEvents::open_others(const HeldProcess& held, const perf_event_attr& attributes) {
  // Those that are made from here on inherit the events of their makers. A program that makes threads all the time may
  // have a new one at each look, which most likely has inherited them.
  constexpr int kMostLooks = 16;
  for (int look = 0; look < kMostLooks; ++look) {
    const std::vector<pid_t> threads = new_threads(held, threads_);
    if (threads.empty()) break;
    for (const pid_t thread : threads) {
      for (const PerfRing& ring : rings_) {
        const std::size_t before = others_.size();
        if (Status opened = open_beside(attributes, thread, ring, others_); !opened) return opened;
        if (others_.size() == before) continue;
        if (held.has_thread(thread)) {
          note_event(others_.back(), thread);
        } else {  // the number may be another process's thread now
          ::close(others_.back());
          others_.pop_back();
        }
      }
    }
  }
  return Unit{};
}

// They have rings of their own, which nobody empties before it is time: a ring that is full is what keeps a program
// that waits all the time from being copied all the time.
Status SampleEvents::open_waits(std::uint32_t per_second, const perf_event_attr& attributes) {
  std::map<std::uint16_t, pid_t> first_of;  // CPUs
  for (const PerfRing& beside : rings_) {
    for (const pid_t thread : threads_) {
      const int fd = open_perf_event(attributes, thread, beside.cpu);
      if (fd < 0 && errno == ESRCH) continue;
      if (fd < 0) return Error{why_perf_is_refused(errno)};
      wait_rings_.push_back({fd, beside.cpu, nullptr, 0});
      first_of[beside.cpu] = thread;
      note_event(fd, thread);
      break;
    }
  }
  if (Status mapped = map_wait_rings(per_second); !mapped) return mapped;
  for (const pid_t thread : threads_) {
    for (const PerfRing& ring : wait_rings_) {
      const std::size_t before = wait_others_.size();
      if (thread == first_of[ring.cpu]) continue;
      if (Status opened = open_beside(attributes, thread, ring, wait_others_); !opened) return opened;
      if (wait_others_.size() != before) note_event(wait_others_.back(), thread);
    }
  }
  return Unit{};
}

Status SampleEvents::map_wait_rings(std::uint32_t per_second) {
  std::vector<PerfRing*> all = pointers_to(wait_rings_);
  const std::size_t enough = std::bit_floor(std::size_t{per_second} * kStackBytes * kDrainMs / 1000);
  const std::size_t most = std::min(kLargestRing, std::bit_floor(kAllRings / std::max<std::size_t>(1, all.size())));
  bool mapped = false;
  for (std::size_t bytes = std::clamp(enough, kSmallestRing, std::max(kSmallestRing, most));
       !mapped && bytes >= kSmallestRing; bytes /= 2)
    mapped = PerfRing::map_all(all, bytes);
  if (mapped) return Unit{};
  return Error{std::string("perf events have no memory left to write to (mmap: ") + std::strerror(errno) + ")"};
}

void SampleEvents::close_waits() {
  for (const int fd : wait_others_) ::close(fd);
  wait_others_.clear();
  for (PerfRing& ring : wait_rings_) ring.close();
  wait_rings_.clear();
}

Status SampleEvents::open(const SampleOptions& options, pid_t program, const HeldProcess* held,
                          reader::SampleSource& source) {
  bool kernel = true;
  bool build_ids = true;
  bool mapped = false;
  perf_event_attr attributes{};
  std::set<pid_t> present;
  const std::vector<pid_t> threads = held != nullptr ? new_threads(*held, present) : std::vector<pid_t>{program};
  const std::size_t each = std::bit_floor(kAllRings / std::max<std::size_t>(1, online_cpus().size()));
  for (std::size_t bytes = std::clamp(each, kSmallestRing, kLargestRing); !mapped && bytes >= kSmallestRing;
       bytes /= 2) {
    while (!open_rings(threads, held, attributes = attributes_for(options.per_second, kernel, build_ids, bytes))) {
      if (errno == ESRCH) return Error{"process " + std::to_string(program) + " has ended"};
      if (kernel && (errno == EACCES || errno == EPERM))
        kernel = false;
      else if (build_ids && errno == EINVAL)
        build_ids = false;
      else
        return Error{why_perf_is_refused(errno)};
    }
    std::vector<PerfRing*> all = pointers_to(rings_);
    mapped = PerfRing::map_all(all, bytes);
  }
  if (!mapped)
    return Error{std::string("perf events have no memory left to write to (mmap: ") + std::strerror(errno) +
                 "): raise kernel.perf_event_mlock_kb or ulimit -l"};
  if (kernel) source.flags |= format::kSamplesKernel;
  if (!kernel)
    source.note = std::string("time in the kernel was not sampled") +
                  (options.waits ? ", nor where threads waited" : "") +
                  ": kernel.perf_event_paranoid is above 1, and karst has no CAP_PERFMON";
  if (held != nullptr)
    if (Status others_too = open_others(*held, attributes); !others_too) return others_too;
  if (!kernel || !options.waits) return Unit{};
  if (const Status waits = open_waits(options.per_second, wait_attributes(attributes)); waits) {
    source.flags |= format::kSamplesWaits;
  } else {
    close_waits();  // there are samples of CPU time
    source.note = "where threads waited was not sampled: " + waits.error().message;
  }
  return Unit{};
}

bool SampleEvents::is_second_copy(const KernelSample& sample) {
  if (others_.empty()) return false;
  const auto owner = owners_.find(sample.event);
  const pid_t from = owner == owners_.end() ? 0 : owner->second;
  return taken_from_.try_emplace({sample.sample.tid, sample.sample.is_wait}, from).first->second != from;
}

void SampleEvents::forget(std::uint32_t tid) {
  taken_from_.erase({tid, false});
  taken_from_.erase({tid, true});
}

KernelSample read_sample(std::span<const std::byte> record) {
  KernelSample made;
  RawSample& sample = made.sample;
  const auto header = perf_value<perf_event_header>(record, 0);
  const std::span<const std::byte> bytes = record.subspan(sizeof header);
  sample.pid = perf_value<std::uint32_t>(bytes, 0);
  sample.tid = perf_value<std::uint32_t>(bytes, 4);
  made.ns = perf_value<std::uint64_t>(bytes, 8);
  sample.in_kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  made.event = perf_value<std::uint64_t>(bytes, 16);
  std::size_t at = 24;
  const auto abi = perf_value<std::uint64_t>(bytes, at);
  at += 8;
  if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
    for (const unsigned number : kDwarfNumbers) {
      sample.registers[number] = perf_value<std::uint64_t>(bytes, at);
      at += 8;
    }
  }
  const auto size = perf_value<std::uint64_t>(bytes, at);
  at += 8;
  if (abi == PERF_SAMPLE_REGS_ABI_64 && size != 0 && size <= bytes.size() - std::min(bytes.size(), at)) {
    const std::uint64_t copied = std::min(size, perf_value<std::uint64_t>(bytes, at + size));
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    sample.stack.assign(from, from + static_cast<std::ptrdiff_t>(copied));
  }
  return made;
}

}  // namespace karst::kernel
