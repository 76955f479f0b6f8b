// SPDX-License-Identifier: MIT
#include "collect/launch/breakpoints.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "arch/page.h"
#include "base/clock.h"

namespace karst::collect {
namespace {

constexpr std::size_t kDataSize =
    2 * arch::kPage;  // some 60 hits until they are taken; small, as perf counts locked memory

// asm/perf_regs.h: bits of ax bx cx dx si di bp sp ... r8 r9.
constexpr std::uint64_t kRegisters = 1U << 2 | 1U << 3 | 1U << 4 | 1U << 5 | 1U << 16 | 1U << 17;

constexpr std::uint64_t kSampled =
    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_REGS_USER;

perf_event_attr attributes_for(std::uint64_t address) {
  perf_event_attr a{};
  a.size = sizeof a;
  a.type = PERF_TYPE_BREAKPOINT;
  a.bp_type = HW_BREAKPOINT_X;
  a.bp_addr = address;
  a.bp_len = sizeof(long);
  a.sample_period = 1;
  a.sample_type = kSampled;
  a.sample_regs_user = kRegisters;
  a.wakeup_events = 1;
  a.exclude_kernel = 1;
  a.exclude_hv = 1;
  a.inherit = 1;
  a.remove_on_exec = 1;  // addresses mean nothing in the next image
  a.use_clockid = 1;
  a.clockid = CLOCK_MONOTONIC_RAW;
  return a;
}

int open_event(const perf_event_attr& attributes, pid_t tid, int cpu) {
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

int paranoid_level() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  int level = 0;
  return file >> level ? level : -1;
}

Error explain(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return Error{"the system does not allow breakpoints in the process (kernel.perf_event_paranoid is " +
                   std::to_string(paranoid_level()) +
                   "): be its user with kernel.perf_event_paranoid at 2 or less, or have CAP_PERFMON, or be root"};
    case ENOSPC:
      return Error{
          "there is no hardware breakpoint left: the processor has four, debuggers' among them; give fewer places"};
    case EMFILE:
      return Error{"too many descriptors are needed, one for each thread, processor and place (ulimit -n)"};
    case ESRCH:
      return Error{"the process has ended"};
    default:
      return Error{std::string("the system has no hardware breakpoints for us (perf_event_open: ") +
                   std::strerror(error) + "); in a virtual machine they may be switched off"};
  }
}

__attribute__((noinline)) void place_of_a_breakpoint() { asm volatile(""); }

/// False where the kernel takes a breakpoint that is then never hit: a virtual machine whose host keeps the debug
/// registers for itself. Where none can be opened, whoever opens the next one finds out why.
bool breakpoints_are_hit() {
  perf_event_attr a{};
  a.size = sizeof a;
  a.type = PERF_TYPE_BREAKPOINT;
  a.bp_type = HW_BREAKPOINT_X;
  a.bp_addr = reinterpret_cast<std::uint64_t>(&place_of_a_breakpoint);
  a.bp_len = sizeof(long);
  a.sample_period = 1;
  a.exclude_kernel = 1;
  a.exclude_hv = 1;
  const Descriptor descriptor(open_event(a, 0, -1));
  if (descriptor.get() < 0) return true;
  place_of_a_breakpoint();
  std::uint64_t hits = 0;
  return read(descriptor.get(), &hits, sizeof hits) != sizeof hits || hits != 0;
}

}  // namespace

Breakpoints::Breakpoints() : clock_(make_clock({read_clock_pair()})) {}

Breakpoints::~Breakpoints() {
  for (const Ring& ring : rings_) munmap(ring.pages, arch::kPage + kDataSize);
}

Status Breakpoints::open_rings() {
  if (!breakpoints_are_hit()) {
    return Error{
        "the system has no hardware breakpoints: it takes them, but none is ever hit, as in virtual machines "
        "whose host keeps the processor's debug registers for itself"};
  }
  // Samples of inherited events need a ring for each processor; one is enough for all threads and places.
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < cpus; ++cpu) {
    perf_event_attr a = attributes_for(0);
    a.type = PERF_TYPE_SOFTWARE;
    a.config = PERF_COUNT_SW_DUMMY;
    a.inherit = 0;
    a.bp_type = 0;
    a.bp_len = 0;
    const int fd = open_event(a, 0, cpu);
    if (fd < 0 && errno == ENODEV) continue;  // a processor that is not there
    if (fd < 0) return explain(errno);
    Ring ring{cpu, Descriptor(fd), nullptr};
    ring.pages = mmap(nullptr, arch::kPage + kDataSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring.pages == MAP_FAILED)
      return Error{std::string("no memory for breakpoints (") + std::strerror(errno) +
                   "; see kernel.perf_event_mlock_kb)"};
    rings_.push_back(std::move(ring));
  }
  return Unit{};
}

Status Breakpoints::open_on(const HeldProcess& process, pid_t tid, std::uint64_t address, std::uint32_t place) {
  const perf_event_attr a = attributes_for(address);
  for (const Ring& ring : rings_) {
    const int fd = open_event(a, tid, ring.cpu);
    if (fd < 0) return explain(errno);
    Descriptor descriptor(fd);
    std::uint64_t id = 0;
    if (ioctl(fd, PERF_EVENT_IOC_ID, &id) != 0 || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring.descriptor.get()) != 0)
      return explain(errno);
    // The number may have become another process's thread.
    if (!process.has_thread(tid)) return explain(ESRCH);
    events_.push_back({id, process.number(), place, std::move(descriptor)});
  }
  return Unit{};
}

Status Breakpoints::add(const HeldProcess& process, std::uint64_t address, std::uint32_t place) {
  if (rings_.empty())
    if (const Status opened = open_rings(); !opened) return opened;
  std::set<pid_t> done;
  const std::size_t before = events_.size();
  // Threads that come meanwhile inherit from one that has it; those of one that had not yet are found in the next
  // round.
  for (bool more = true; more;) {
    more = false;
    for (const pid_t tid : process.threads()) {
      if (!done.insert(tid).second) continue;
      more = true;
      const Status opened = open_on(process, tid, address, place);
      if (const char state = process.state(tid); !opened && state != '?' && state != 'Z' && state != 'X') {
        events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(before), events_.end());
        return opened;
      }
    }
  }
  return done.empty() ? Status(explain(ESRCH)) : Status(Unit{});
}

void Breakpoints::remove(std::uint32_t place) {
  std::erase_if(events_, [&](const Event& event) { return event.place == place; });
}

void Breakpoints::forget(pid_t pid) {
  std::erase_if(events_, [&](const Event& event) { return event.pid == pid; });
}

void Breakpoints::add_descriptors(std::vector<pollfd>& descriptors) const {
  for (const Ring& ring : rings_) descriptors.push_back({ring.descriptor.get(), POLLIN, 0});
}

void Breakpoints::read_ring(const Ring& ring, std::vector<BreakpointHit>& hits) {
  auto& control = *static_cast<perf_event_mmap_page*>(ring.pages);
  const auto* data = static_cast<const char*>(ring.pages) + arch::kPage;
  const std::uint64_t head = __atomic_load_n(&control.data_head, __ATOMIC_ACQUIRE);
  std::uint64_t tail = control.data_tail;
  const auto copy = [&](std::uint64_t at, void* to, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) static_cast<char*>(to)[i] = data[(at + i) % kDataSize];
  };
  struct Sample {
    std::uint64_t ip;
    std::uint32_t pid;
    std::uint32_t tid;
    std::uint64_t time;
    std::uint64_t id;
    std::uint64_t abi;
    std::uint64_t registers[6];  // cx dx si di r8 r9
  };
  // Between two readings of both clocks: not everywhere does the kernel tell the rate.
  const ClockPair& pair = clock_.pairs.front();
  const Clock clock = make_clock({pair, read_clock_pair()});
  while (head - tail >= sizeof(perf_event_header)) {
    perf_event_header header;
    copy(tail, &header, sizeof header);
    if (header.size < sizeof header || header.size > head - tail) break;
    Sample s{};
    if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof header + offsetof(Sample, registers)) {
      copy(tail + sizeof header, &s, std::min(header.size - sizeof header, sizeof s));
      const auto event = std::find_if(events_.begin(), events_.end(), [&](const Event& e) { return e.id == s.id; });
      BreakpointHit hit;
      hit.address = s.ip;
      hit.pid = static_cast<pid_t>(s.pid);
      hit.tid = static_cast<pid_t>(s.tid);
      const std::int64_t ns = static_cast<std::int64_t>(s.time - pair.monotonic_raw_ns);
      hit.ticks =
          pair.ticks + static_cast<std::uint64_t>(static_cast<__int128>(ns) *
                                                  static_cast<std::int64_t>(clock.ticks_per_second) / 1'000'000'000);
      hit.has_arguments = s.abi != 0 && header.size >= sizeof header + sizeof s;
      hit.arguments = {s.registers[3], s.registers[2], s.registers[1], s.registers[0], s.registers[4], s.registers[5]};
      if (event != events_.end()) {
        hit.place = event->place;
        hit.owner = event->pid;
        hits.push_back(hit);
      }
    }
    tail += header.size;
  }
  __atomic_store_n(&control.data_tail, tail, __ATOMIC_RELEASE);
}

std::vector<BreakpointHit> Breakpoints::take() {
  std::vector<BreakpointHit> hits;
  for (const Ring& ring : rings_) read_ring(ring, hits);
  std::sort(hits.begin(), hits.end(), [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
  return hits;
}

}  // namespace karst::collect
