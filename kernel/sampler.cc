// SPDX-License-Identifier: MIT
// Two threads: one takes samples out of the kernel's rings, which are small, the other has their stacks read, batch
// after batch.
#include "kernel/sampler.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <semaphore>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/fork_lock.h"
#include "base/process_maps.h"
#include "format/control.h"
#include "kernel/address_space.h"
#include "kernel/perf_ring.h"
#include "kernel/quiet_thread.h"
#include "kernel/raw_clock.h"
#include "kernel/sample_events.h"
#include "kernel/stack_reader.h"

namespace karst::kernel {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{32} << 20;  // of stacks that are read at once

/// A record of the kernel's, or what is made of one.
struct Record {
  std::uint64_t ticks = 0;
  perf_event_header header{};
  std::vector<std::byte> bytes;  ///< behind the header
  KernelSample sample;           ///< of PERF_RECORD_SAMPLE
};

}  // namespace

struct Sampler::Impl {
  explicit Impl(const SampleOptions& asked) : options(asked) {}

  Status start(pid_t program);
  Status open(pid_t program);
  Status look_at_memory();
  void end_draining();
  void run();
  void drain();
  void take(const PerfRing& ring, std::span<const std::byte> record, bool is_wait);
  void take_in_order(std::uint64_t until);
  void note_name(const Record& record);
  void leave_out_own(reader::Column<format::SampleRecord>& samples) const;
  void look_at_rights();
  void hand_over();
  reader::SampleLog finish();

  SampleOptions options;
  std::optional<HeldProcess> held;  // that runs; none: a program that is started
  RawClock clock;
  SampleEvents events;
  Descriptor stop_event;
  std::atomic<bool> stops = false;  // where nothing wakes the thread it looks
  std::vector<std::byte> copy;
  std::vector<Record> pending;  // of which earlier ones may still come
  AddressSpaces spaces;
  std::vector<RawSample> batch;
  std::size_t batch_bytes = 0;
  std::set<std::uint32_t> processes;                    // that were sampled since their rights were last looked at
  std::map<std::uint32_t, sandbox::Credentials> users;  // of those that are not root, where we are
  /// libkarst's own process beside a program's. It has that one's name, until it has given itself one.
  struct Own {
    std::uint32_t pid;
    std::uint64_t from, to;  // ticks
  };
  std::map<std::uint32_t, std::uint64_t> born;  // processes that live: when they were made, ticks
  std::vector<Own> own;
  std::uint64_t lost = 0;
  std::uint64_t waits_left_out = 0;  // as their ring was full

  reader::SampleLog log;
  StackReader stacks{log};
  std::binary_semaphore begun{0};
  std::thread draining;
};

Sampler::Sampler(const SampleOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Sampler::~Sampler() {
  if (impl_->draining.joinable()) stop();
}

bool Sampler::works() const { return impl_->draining.joinable(); }

Status Sampler::Impl::look_at_memory() {
  const std::vector<Mapping> maps = read_maps(held->path("maps"));
  if (maps.empty()) return Error{"the process does not let its maps be read, which say where its code lies"};
  spaces.begin_with(static_cast<std::uint32_t>(held->number()), maps,
                    {events.threads().begin(), events.threads().end()});
  return Unit{};
}

Status Sampler::Impl::open(pid_t program) {
  if (Status opened = events.open(options, program, held ? &*held : nullptr, log.source); !opened) return opened;
  return held ? look_at_memory() : Unit{};
}

Status Sampler::start(pid_t program) { return impl_->start(program); }
Status Sampler::attach(pid_t child) {
  const auto process = HeldProcess::open(child);
  return process ? attach(*process) : Status(process.error());
}

Status Sampler::attach(const HeldProcess& process) {
  impl_->held = process;
  return impl_->start(process.number());
}

Status Sampler::Impl::start(pid_t program) {
  if (options.per_second == 0) return Unit{};
  if (Status opened = open(program); !opened) {
    log.source.note = opened.error().message;
    log.source.flags = 0;
    events.close();
    return opened;
  }
  const auto give_up = [this](const std::string& why) {
    log.source = {};
    log.source.note = why;
    events.close();
    return Error{why};
  };
  stop_event = Descriptor(eventfd(0, EFD_CLOEXEC));
  if (!stop_event) return give_up(std::string("there is no descriptor to end it by: ") + std::strerror(errno));
  log.source.period_ns = 1'000'000'000 / options.per_second;
  log.source.begin_ticks = clock.now().ticks;
  draining = start_thread("karst-samples", [this] {
    begun.release();
    run();
  });
  if (!draining.joinable()) return give_up("no thread can be had to take samples");
  begun.acquire();
  if (!stacks.start()) {
    end_draining();
    return give_up("no thread can be had to read stacks");
  }
  return Unit{};
}

void Sampler::Impl::end_draining() {
  stops = true;
  eventfd_write(stop_event.get(), 1);
  draining.join();
}

void Sampler::Impl::run() {
  constexpr int kOftenMs = 10;
  int every = kDrainMs;
  std::vector<pollfd> descriptors = {{stop_event.get(), POLLIN, 0}};
  for (const PerfRing& ring : events.rings()) descriptors.push_back({ring.fd, POLLIN, 0});
  while (true) {
    wait_for(descriptors, every);
    const std::shared_lock no_fork(fork_lock());
    drain();
    if (stops || descriptors[0].revents != 0) return;
    // Who has ended all its events is readable for ever. Other threads' events may still write to its ring.
    for (pollfd& d : descriptors) {
      if ((d.revents & (POLLHUP | POLLERR)) == 0) continue;
      d.fd = -1;
      if (events.has_others()) every = kOftenMs;
    }
  }
}

void Sampler::Impl::drain() {
  clock.read_when_due();
  for (PerfRing& ring : events.rings())
    ring.drain(copy, [&](std::span<const std::byte> record) { take(ring, record, false); });
  for (PerfRing& ring : events.wait_rings())
    ring.drain(copy, [&](std::span<const std::byte> record) { take(ring, record, true); });
  look_at_rights();
  // What another CPU was just writing when we looked comes the next time.
  constexpr double kSlack = 3e7;  // ns
  take_in_order(clock.now().ticks - clock.ticks_of(kSlack));
}

void Sampler::Impl::take(const PerfRing& ring, std::span<const std::byte> record, bool is_wait) {
  Record made;
  made.header = perf_value<perf_event_header>(record, 0);
  const std::span<const std::byte> bytes = record.subspan(sizeof made.header);
  if (made.header.type == PERF_RECORD_LOST || made.header.type == PERF_RECORD_LOST_SAMPLES) {
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
  made.sample = read_sample(record);
  RawSample& sample = made.sample.sample;
  processes.insert(sample.pid);
  made.ticks = sample.ticks = clock.ticks_at(made.sample.ns);
  sample.cpu = ring.cpu;
  sample.is_wait = is_wait;
  pending.push_back(std::move(made));
}

void Sampler::Impl::take_in_order(std::uint64_t until) {
  std::stable_sort(pending.begin(), pending.end(), [](const Record& a, const Record& b) { return a.ticks < b.ticks; });
  std::size_t done = 0;
  for (; done < pending.size() && pending[done].ticks < until; ++done) {
    Record& record = pending[done];
    switch (record.header.type) {
      case PERF_RECORD_SAMPLE:
        if (events.is_second_copy(record.sample)) break;
        record.sample.sample.space = spaces.of(record.sample.sample.pid);
        batch_bytes += sizeof(RawSample) + record.sample.sample.stack.size();
        batch.push_back(std::move(record.sample.sample));
        if (batch_bytes >= kBatchBytes) hand_over();
        break;
      case PERF_RECORD_MMAP2:
        spaces.map(record.header.misc, record.bytes);
        break;
      case PERF_RECORD_FORK:
        spaces.fork(perf_value<std::uint32_t>(record.bytes, 0), perf_value<std::uint32_t>(record.bytes, 4),
                    perf_value<std::uint32_t>(record.bytes, 8));
        events.forget(perf_value<std::uint32_t>(record.bytes, 8));
        born.try_emplace(perf_value<std::uint32_t>(record.bytes, 0), record.ticks);
        break;
      case PERF_RECORD_EXIT:
        if (const auto pid = perf_value<std::uint32_t>(record.bytes, 0);
            pid == perf_value<std::uint32_t>(record.bytes, 8)) {
          born.erase(pid);
          for (Own& process : own)
            if (process.pid == pid) process.to = std::min(process.to, record.ticks);
        }
        spaces.exit(perf_value<std::uint32_t>(record.bytes, 0), perf_value<std::uint32_t>(record.bytes, 8));
        events.forget(perf_value<std::uint32_t>(record.bytes, 8));
        break;
      case PERF_RECORD_COMM:
        note_name(record);
        if ((record.header.misc & PERF_RECORD_MISC_COMM_EXEC) == 0) break;
        spaces.exec(perf_value<std::uint32_t>(record.bytes, 0));
        // The thread that called it has the process's number from now on, whatever its own was.
        events.forget(perf_value<std::uint32_t>(record.bytes, 0));
        break;
      default:
        break;
    }
  }
  pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(done));
}

// The bytes are pid, tid and the new name.
void Sampler::Impl::note_name(const Record& record) {
  constexpr std::size_t kNameAt = 8;
  const auto pid = perf_value<std::uint32_t>(record.bytes, 0);
  if (record.bytes.size() <= kNameAt || pid != perf_value<std::uint32_t>(record.bytes, 4)) return;
  const char* const name = reinterpret_cast<const char*>(record.bytes.data()) + kNameAt;
  if (std::string_view(name, strnlen(name, record.bytes.size() - kNameAt)) != format::kMaintenanceName) return;
  const auto at = born.find(pid);
  own.push_back({pid, at != born.end() ? at->second : record.ticks, ~std::uint64_t{0}});
}

void Sampler::Impl::leave_out_own(reader::Column<format::SampleRecord>& samples) const {
  if (own.empty()) return;
  const auto is_own = [this](const format::SampleRecord& sample) {
    return std::any_of(own.begin(), own.end(), [&](const Own& process) {
      return process.pid == sample.pid && process.from <= sample.ticks && sample.ticks <= process.to;
    });
  };
  samples.set_size(static_cast<std::size_t>(std::remove_if(samples.begin(), samples.end(), is_own) - samples.begin()));
}

// A process of root's may become another user's. What that one maps is not to be read as root then.
void Sampler::Impl::look_at_rights() {
  for (const std::uint32_t pid : std::exchange(processes, {}))
    if (auto user = sandbox::Credentials::of_process(static_cast<pid_t>(pid), geteuid(), getegid()))
      users.insert_or_assign(pid, std::move(*user));
}

void Sampler::Impl::hand_over() {
  if (batch.empty()) return;
  StackReader::Batch next{std::exchange(batch, {}), spaces.files(), options.as};
  for (const RawSample& sample : next.samples) {
    if (next.as) break;
    if (const auto user = users.find(sample.pid); user != users.end()) next.as = user->second;
  }
  batch_bytes = 0;
  const std::size_t samples = next.samples.size();
  if (!stacks.hand_over(std::move(next))) lost += samples;
}

reader::SampleLog Sampler::Impl::finish() {
  if (draining.joinable()) {
    end_draining();
    take_in_order(~std::uint64_t{0});
    hand_over();
    stacks.stop();
    leave_out_own(log.samples);
    leave_out_own(log.waits);
    events.close();
    log.source.end_ticks = clock.now().ticks;
    log.source.lost += lost;
    log.source.waits_left_out = waits_left_out;
  }
  return std::move(log);
}

reader::SampleLog Sampler::stop() { return impl_->finish(); }

}  // namespace karst::kernel
