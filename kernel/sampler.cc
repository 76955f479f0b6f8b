// SPDX-License-Identifier: MIT
// Two threads: one takes samples out of the kernel's rings, which are small, the other has their stacks read, batch
// after batch.
#include "kernel/sampler.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <semaphore>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/fork_lock.h"
#include "base/process_maps.h"
#include "kernel/address_space.h"
#include "kernel/cpus.h"
#include "kernel/perf_ring.h"
#include "kernel/present_threads.h"
#include "kernel/quiet_thread.h"
#include "kernel/raw_clock.h"
#include "kernel/unwind.h"

namespace karst::kernel {
namespace {

using kernel::perf_value;

/// Of the stack's top, which the kernel copies; less where few samples fit a ring.
constexpr std::uint32_t kStackBytes = 16384;
constexpr std::uint32_t kLeastStackBytes = 8192;
constexpr std::size_t kRoomyRing = std::size_t{512} << 10;
constexpr std::size_t kLargestRing = std::size_t{4} << 20;  // a CPU's
constexpr std::size_t kAllRings = std::size_t{64} << 20;
constexpr std::size_t kSmallestRing = std::size_t{64} << 10;
constexpr std::size_t kBatchBytes = std::size_t{32} << 20;  // of stacks that are read at once
constexpr std::size_t kMostBatches = 4;                     // that wait for that; more are lost
constexpr int kEveryMs = 100;                               // rings are emptied at least
constexpr std::size_t kMostSamples = 8'000'000;             // that are kept of a kind; 24 bytes each

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

/// A record of the kernel's, or what is made of one.
struct Record {
  std::uint64_t ticks = 0;
  perf_event_header header{};
  std::vector<std::byte> bytes;  ///< behind the header
  RawSample sample;              ///< of PERF_RECORD_SAMPLE
  std::uint64_t event = 0;       ///< of that: which one it comes from; inherited ones have their maker's number
};

}  // namespace

struct Sampler::Impl {
  explicit Impl(const SampleOptions& asked) : options(asked) {}
  ~Impl() { close_events(); }

  struct Batch {
    std::vector<RawSample> samples;
    std::vector<CodeFile> files;
    std::optional<sandbox::Credentials> as;
  };

  std::optional<HeldProcess> held;  // that runs; none: a program that is started
  Status start(pid_t program, bool running);
  Status open(pid_t program, bool running);
  bool open_rings(const std::vector<pid_t>& threads, const perf_event_attr& attributes);
  Status open_others(const perf_event_attr& attributes);
  Status open_waits(const perf_event_attr& attributes);
  void close_waits();
  Status look_at_memory();
  void note_event(int fd, pid_t thread);
  void close_events();
  bool is_second_copy(const Record& record);
  void forget_owner(std::uint32_t tid);
  void end_draining();
  void run();
  void drain();
  void take(const kernel::PerfRing& ring, std::span<const std::byte> record, bool is_wait);
  void take_in_order(std::uint64_t until);
  void look_at_rights();
  void hand_over();
  void read_stacks();
  void add(const Batch& batch);

  SampleOptions options;
  kernel::RawClock clock;
  std::vector<kernel::PerfRing> rings;
  std::vector<int> others;                   // events of further threads
  std::set<pid_t> with_events;               // threads that have events of their own
  std::vector<kernel::PerfRing> wait_rings;  // of threads that leave their CPUs
  std::vector<int> wait_others;
  std::map<std::uint64_t, pid_t> owners;  // of events, by the kernel's number
  /// By thread and whether they are of its switches: whose events its samples are taken from.
  std::map<std::pair<std::uint32_t, bool>, pid_t> owner_taken;
  Descriptor stop_event;
  std::atomic<bool> stops = false;  // where nothing wakes the thread it looks
  std::vector<std::byte> copy;
  std::vector<Record> pending;  // of which earlier ones may still come
  AddressSpaces spaces;
  std::vector<RawSample> batch;
  std::size_t batch_bytes = 0;
  std::set<std::uint32_t> processes;                    // that were sampled since their rights were last looked at
  std::map<std::uint32_t, sandbox::Credentials> users;  // of those that are not root, where we are

  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  std::deque<Batch> batches;
  bool ended = false;
  std::uint64_t lost = 0;
  std::uint64_t waits_left_out = 0;  // as their ring was full

  // Of the reading thread, and of stop() when it has ended.
  reader::SampleLog log;
  std::vector<CodeFile> known_files;
  std::map<UnwoundFunction, std::uint32_t> functions;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> stacks;  // caller, function: 1 + place
  std::string unread;                                                       // why

  std::binary_semaphore begun{0};
  std::thread draining;
  std::thread reading;
};

Sampler::Sampler(const SampleOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Sampler::~Sampler() {
  if (impl_->draining.joinable()) stop();
}

bool Sampler::works() const { return impl_->draining.joinable(); }

void Sampler::Impl::close_events() {
  close_waits();
  for (const int fd : others) close(fd);
  others.clear();
  for (kernel::PerfRing& ring : rings) ring.close();
  rings.clear();
  owners.clear();
}

void Sampler::Impl::note_event(int fd, pid_t thread) {
  std::uint64_t id = 0;
  if (ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0) owners[id] = thread;
}

// Of the first thread that has not ended.
bool Sampler::Impl::open_rings(const std::vector<pid_t>& threads, const perf_event_attr& attributes) {
  errno = ESRCH;
  for (const pid_t thread : threads) {
    close_events();
    bool is_gone = false;
    for (const std::uint16_t cpu : kernel::online_cpus()) {
      const int fd = kernel::open_perf_event(attributes, thread, cpu);
      is_gone = (fd < 0 && errno == ESRCH) || (held && !held->has_thread(thread));
      if (is_gone && fd >= 0) close(fd);
      errno = is_gone ? ESRCH : errno;
      if (is_gone) break;
      if (fd < 0 && errno != ENODEV && errno != ENXIO) return false;  // else it went offline
      if (fd < 0) continue;
      rings.push_back({fd, cpu, nullptr, 0});
      note_event(fd, thread);
    }
    if (!is_gone) with_events.insert(thread);
    if (!is_gone) return true;
  }
  return false;
}

Status Sampler::Impl::open_others(const perf_event_attr& attributes) {
  // Those that are made from here on inherit the events of their makers. A program that makes threads all the time may
  // have a new one at each look, which most likely has inherited them.
  constexpr int kMostLooks = 16;
  for (int look = 0; look < kMostLooks; ++look) {
    const std::vector<pid_t> threads = kernel::new_threads(*held, with_events);
    if (threads.empty()) break;
    for (const pid_t thread : threads) {
      for (const kernel::PerfRing& ring : rings) {
        const std::size_t before = others.size();
        if (Status opened = kernel::open_beside(attributes, thread, ring, others); !opened) return opened;
        if (others.size() == before) continue;
        if (held->has_thread(thread)) {
          note_event(others.back(), thread);
        } else {  // the number may be another process's thread now
          close(others.back());
          others.pop_back();
        }
      }
    }
  }
  return Unit{};
}

// They have rings of their own, which nobody empties before it is time: a ring that is full is what keeps a program
// that waits all the time from being copied all the time.
Status Sampler::Impl::open_waits(const perf_event_attr& attributes) {
  std::map<std::uint16_t, pid_t> first_of;  // CPUs
  for (const kernel::PerfRing& beside : rings) {
    for (const pid_t thread : with_events) {
      const int fd = kernel::open_perf_event(attributes, thread, beside.cpu);
      if (fd < 0 && errno == ESRCH) continue;
      if (fd < 0) return Error{kernel::why_perf_is_refused(errno)};
      wait_rings.push_back({fd, beside.cpu, nullptr, 0});
      first_of[beside.cpu] = thread;
      note_event(fd, thread);
      break;
    }
  }
  std::vector<kernel::PerfRing*> all;
  for (kernel::PerfRing& ring : wait_rings) all.push_back(&ring);
  const std::size_t enough = std::bit_floor(std::size_t{options.per_second} * kStackBytes * kEveryMs / 1000);
  const std::size_t most = std::min(kLargestRing, std::bit_floor(kAllRings / std::max<std::size_t>(1, all.size())));
  bool mapped = false;
  for (std::size_t bytes = std::clamp(enough, kSmallestRing, std::max(kSmallestRing, most));
       !mapped && bytes >= kSmallestRing; bytes /= 2)
    mapped = kernel::PerfRing::map_all(all, bytes);
  if (!mapped)
    return Error{std::string("perf events have no memory left to write to (mmap: ") + std::strerror(errno) + ")"};
  for (const pid_t thread : with_events) {
    for (const kernel::PerfRing& ring : wait_rings) {
      const std::size_t before = wait_others.size();
      if (thread == first_of[ring.cpu]) continue;
      if (Status opened = kernel::open_beside(attributes, thread, ring, wait_others); !opened) return opened;
      if (wait_others.size() != before) note_event(wait_others.back(), thread);
    }
  }
  log.source.flags |= format::kSamplesWaits;
  return Unit{};
}

void Sampler::Impl::close_waits() {
  for (const int fd : wait_others) close(fd);
  wait_others.clear();
  for (kernel::PerfRing& ring : wait_rings) ring.close();
  wait_rings.clear();
}

Status Sampler::Impl::look_at_memory() {
  const std::vector<Mapping> maps = read_maps(held->path("maps"));
  if (maps.empty()) return Error{"the process does not let its maps be read, which say where its code lies"};
  spaces.begin_with(static_cast<std::uint32_t>(held->number()), maps, {with_events.begin(), with_events.end()});
  return Unit{};
}

Status Sampler::Impl::open(pid_t program, bool running) {
  bool kernel = true;
  bool build_ids = true;
  bool mapped = false;
  perf_event_attr attributes{};
  std::set<pid_t> present;
  const std::vector<pid_t> threads = running ? kernel::new_threads(*held, present) : std::vector<pid_t>{program};
  const std::size_t each = std::bit_floor(kAllRings / std::max<std::size_t>(1, kernel::online_cpus().size()));
  for (std::size_t bytes = std::clamp(each, kSmallestRing, kLargestRing); !mapped && bytes >= kSmallestRing;
       bytes /= 2) {
    while (!open_rings(threads, attributes = attributes_for(options.per_second, kernel, build_ids, bytes))) {
      if (errno == ESRCH) return Error{"process " + std::to_string(program) + " has ended"};
      if (kernel && (errno == EACCES || errno == EPERM))
        kernel = false;
      else if (build_ids && errno == EINVAL)
        build_ids = false;
      else
        return Error{kernel::why_perf_is_refused(errno)};
    }
    std::vector<kernel::PerfRing*> all;
    for (kernel::PerfRing& ring : rings) all.push_back(&ring);
    mapped = kernel::PerfRing::map_all(all, bytes);
  }
  if (!mapped)
    return Error{std::string("perf events have no memory left to write to (mmap: ") + std::strerror(errno) +
                 "): raise kernel.perf_event_mlock_kb or ulimit -l"};
  if (kernel) log.source.flags |= format::kSamplesKernel;
  if (!kernel)
    log.source.note = std::string("time in the kernel was not sampled") +
                      (options.waits ? ", nor where threads waited" : "") +
                      ": kernel.perf_event_paranoid is above 1, and karst has no CAP_PERFMON";
  if (running)
    if (Status others_too = open_others(attributes); !others_too) return others_too;
  if (Status waits = kernel && options.waits ? open_waits(wait_attributes(attributes)) : Unit{}; !waits) {
    close_waits();  // there are samples of CPU time
    log.source.note = "where threads waited was not sampled: " + waits.error().message;
  }
  return running ? look_at_memory() : Unit{};
}

Status Sampler::start(pid_t program) { return impl_->start(program, false); }
Status Sampler::attach(pid_t child) {
  const auto process = HeldProcess::open(child);
  return process ? attach(*process) : Status(process.error());
}

Status Sampler::attach(const HeldProcess& process) {
  impl_->held = process;
  return impl_->start(process.number(), true);
}

Status Sampler::Impl::start(pid_t program, bool running) {
  if (options.per_second == 0) return Unit{};
  if (Status opened = open(program, running); !opened) {
    log.source.note = opened.error().message;
    log.source.flags = 0;
    close_events();
    return opened;
  }
  const auto give_up = [this](const std::string& why) {
    log.source = {};
    log.source.note = why;
    close_events();
    return Error{why};
  };
  stop_event = Descriptor(eventfd(0, EFD_CLOEXEC));
  if (!stop_event) return give_up(std::string("there is no descriptor to end it by: ") + std::strerror(errno));
  log.source.period_ns = 1'000'000'000 / options.per_second;
  log.source.begin_ticks = clock.now().ticks;
  draining = kernel::start_thread("karst-samples", [this] {
    begun.release();
    run();
  });
  if (!draining.joinable()) return give_up("no thread can be had to take samples");
  begun.acquire();
  reading = kernel::start_thread("karst-stacks", [this] {
    begun.release();
    read_stacks();
  });
  if (!reading.joinable()) {
    end_draining();
    return give_up("no thread can be had to read stacks");
  }
  begun.acquire();
  return Unit{};
}

void Sampler::Impl::end_draining() {
  stops = true;
  eventfd_write(stop_event.get(), 1);
  draining.join();
}

void Sampler::Impl::run() {
  constexpr int kOftenMs = 10;
  int every = kEveryMs;
  std::vector<pollfd> descriptors = {{stop_event.get(), POLLIN, 0}};
  for (const kernel::PerfRing& ring : rings) descriptors.push_back({ring.fd, POLLIN, 0});
  while (true) {
    kernel::wait_for(descriptors, every);
    const std::shared_lock no_fork(fork_lock());
    drain();
    if (stops || descriptors[0].revents != 0) return;
    // Who has ended all its events is readable for ever. Other threads' events may still write to its ring.
    for (pollfd& d : descriptors) {
      if ((d.revents & (POLLHUP | POLLERR)) == 0) continue;
      d.fd = -1;
      if (!others.empty()) every = kOftenMs;
    }
  }
}

void Sampler::Impl::drain() {
  clock.read_when_due();
  for (kernel::PerfRing& ring : rings)
    ring.drain(copy, [&](std::span<const std::byte> record) { take(ring, record, false); });
  for (kernel::PerfRing& ring : wait_rings)
    ring.drain(copy, [&](std::span<const std::byte> record) { take(ring, record, true); });
  look_at_rights();
  // What another CPU was just writing when we looked comes the next time.
  constexpr double kSlack = 3e7;  // ns
  take_in_order(clock.now().ticks - clock.ticks_of(kSlack));
}

void Sampler::Impl::take(const kernel::PerfRing& ring, std::span<const std::byte> record, bool is_wait) {
  Record made;
  made.header = perf_value<perf_event_header>(record, 0);
  const std::span<const std::byte> bytes = record.subspan(sizeof made.header);
  if (made.header.type == PERF_RECORD_LOST || made.header.type == PERF_RECORD_LOST_SAMPLES) {
    const std::lock_guard guard(mutex);
    (is_wait ? waits_left_out : lost) += perf_value<std::uint64_t>(bytes, made.header.type == PERF_RECORD_LOST ? 8 : 0);
    return;
  }
  if (made.header.type != PERF_RECORD_SAMPLE) {
    // sample_id: pid, tid, time, event.
    if (bytes.size() < 24) return;
    made.ticks = clock.ticks_at(perf_value<std::uint64_t>(bytes, bytes.size() - 16));
    made.bytes.assign(bytes.begin(), bytes.end() - 24);
    pending.push_back(std::move(made));
    return;
  }
  RawSample& sample = made.sample;
  sample.pid = perf_value<std::uint32_t>(bytes, 0);
  sample.tid = perf_value<std::uint32_t>(bytes, 4);
  processes.insert(sample.pid);
  made.ticks = sample.ticks = clock.ticks_at(perf_value<std::uint64_t>(bytes, 8));
  sample.cpu = ring.cpu;
  sample.in_kernel = (made.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  made.event = perf_value<std::uint64_t>(bytes, 16);
  sample.is_wait = is_wait;
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
  pending.push_back(std::move(made));
}

void Sampler::Impl::take_in_order(std::uint64_t until) {
  std::stable_sort(pending.begin(), pending.end(), [](const Record& a, const Record& b) { return a.ticks < b.ticks; });
  std::size_t done = 0;
  for (; done < pending.size() && pending[done].ticks < until; ++done) {
    Record& record = pending[done];
    switch (record.header.type) {
      case PERF_RECORD_SAMPLE:
        if (is_second_copy(record)) break;
        record.sample.space = spaces.of(record.sample.pid);
        batch_bytes += sizeof(RawSample) + record.sample.stack.size();
        batch.push_back(std::move(record.sample));
        if (batch_bytes >= kBatchBytes) hand_over();
        break;
      case PERF_RECORD_MMAP2:
        spaces.map(record.header.misc, record.bytes);
        break;
      case PERF_RECORD_FORK:
        spaces.fork(perf_value<std::uint32_t>(record.bytes, 0), perf_value<std::uint32_t>(record.bytes, 4),
                    perf_value<std::uint32_t>(record.bytes, 8));
        forget_owner(perf_value<std::uint32_t>(record.bytes, 8));
        break;
      case PERF_RECORD_EXIT:
        spaces.exit(perf_value<std::uint32_t>(record.bytes, 0), perf_value<std::uint32_t>(record.bytes, 8));
        forget_owner(perf_value<std::uint32_t>(record.bytes, 8));
        break;
      case PERF_RECORD_COMM:
        if ((record.header.misc & PERF_RECORD_MISC_COMM_EXEC) == 0) break;
        spaces.exec(perf_value<std::uint32_t>(record.bytes, 0));
        // The thread that called it has the process's number from now on, whatever its own was.
        forget_owner(perf_value<std::uint32_t>(record.bytes, 0));
        break;
      default:
        break;
    }
  }
  pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(done));
}

bool Sampler::Impl::is_second_copy(const Record& record) {
  if (others.empty()) return false;
  const auto owner = owners.find(record.event);
  const pid_t from = owner == owners.end() ? 0 : owner->second;
  return owner_taken.try_emplace({record.sample.tid, record.sample.is_wait}, from).first->second != from;
}

void Sampler::Impl::forget_owner(std::uint32_t tid) {
  owner_taken.erase({tid, false});
  owner_taken.erase({tid, true});
}

// A process of root's may become another user's. What that one maps is not to be read as root then.
void Sampler::Impl::look_at_rights() {
  for (const std::uint32_t pid : std::exchange(processes, {}))
    if (auto user = sandbox::Credentials::of_process(static_cast<pid_t>(pid), geteuid(), getegid()))
      users.insert_or_assign(pid, std::move(*user));
}

void Sampler::Impl::hand_over() {
  if (batch.empty()) return;
  Batch next{std::exchange(batch, {}), spaces.files(), options.as};
  for (const RawSample& sample : next.samples) {
    if (next.as) break;
    if (const auto user = users.find(sample.pid); user != users.end()) next.as = user->second;
  }
  batch_bytes = 0;
  const std::lock_guard guard(mutex);
  if (batches.size() >= kMostBatches)
    lost += next.samples.size();
  else
    batches.push_back(std::move(next));
  changed.notify_one();
}

void Sampler::Impl::read_stacks() {
  while (true) {
    Batch next;
    {
      std::unique_lock guard(mutex);
      changed.wait(guard, [this] { return ended || !batches.empty(); });
      if (batches.empty()) return;
      next = std::move(batches.front());
      batches.pop_front();
    }
    add(next);
  }
}

void Sampler::Impl::add(const Batch& read) {
  const std::vector<RawSample>& raw = read.samples;
  const auto unwound = unwind(raw, read.files, read.as);
  const std::shared_lock no_fork(fork_lock());
  if (!unwound) {
    log.source.unread += raw.size();
    unread = unwound.error().message;
  }
  known_files = read.files;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const RawSample& sample = raw[i];
    format::SampleRecord record{};
    record.ticks = sample.ticks;
    record.tid = sample.tid;
    record.pid = sample.pid;
    record.cpu = sample.cpu;
    if (sample.in_kernel) record.flags |= format::kSampleInKernel;
    if (unwound) {
      const Unwound::Stack& stack = unwound->stacks[i];
      if (stack.cut) record.flags |= format::kSampleCut;
      for (auto at = stack.functions.rbegin(); at != stack.functions.rend(); ++at) {
        const auto function = static_cast<std::uint32_t>(
            functions.try_emplace(unwound->functions[*at], static_cast<std::uint32_t>(functions.size())).first->second);
        const auto [known, fresh] = stacks.try_emplace({record.stack, function}, 0);
        if (fresh) {
          log.stacks.push_back({record.stack, function});
          known->second = static_cast<std::uint32_t>(log.stacks.size());
        }
        record.stack = known->second;
      }
    } else {
      record.flags |= format::kSampleCut;
    }
    reader::Column<format::SampleRecord>& kept = sample.is_wait ? log.waits : log.samples;
    if (kept.size() == kMostSamples) {
      const std::size_t half = kMostSamples / 2;
      log.source.lost += half;
      std::copy(kept.begin() + half, kept.end(), kept.begin());
      kept.set_size(kMostSamples - half);
    }
    kept.push_back(record);
  }
}

reader::SampleLog Sampler::stop() {
  Impl& r = *impl_;
  if (r.draining.joinable()) {
    r.end_draining();
    r.take_in_order(~std::uint64_t{0});
    r.hand_over();
    {
      const std::lock_guard guard(r.mutex);
      r.ended = true;
      r.changed.notify_one();
    }
    r.reading.join();
    r.close_events();
    r.log.source.end_ticks = r.clock.now().ticks;
    r.log.source.lost += r.lost;
    r.log.source.waits_left_out = r.waits_left_out;
    r.log.functions.resize(r.functions.size());
    for (const auto& [function, number] : r.functions) {
      reader::SampledFunction& made = r.log.functions[number];
      if (function.file == UnwoundFunction::kNoFile) continue;
      made.module = r.known_files[function.file].path;
      made.build_id = r.known_files[function.file].build_id;
      made.inode = r.known_files[function.file].inode;
      made.address = function.address;
      made.size = function.size;
    }
    if (!r.unread.empty()) r.log.source.note += (r.log.source.note.empty() ? "" : "; ") + r.unread;
  }
  return std::move(r.log);
}

}  // namespace karst::kernel
