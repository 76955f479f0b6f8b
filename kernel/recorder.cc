// SPDX-License-Identifier: MIT
#include "kernel/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <semaphore>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arch/cpu.h"
#include "base/descriptor.h"
#include "base/fork_lock.h"
#include "kernel/collector.h"
#include "kernel/ftrace.h"
#include "kernel/late_ftrace.h"
#include "kernel/perf_events.h"
#include "kernel/present_threads.h"
#include "kernel/quiet_thread.h"
#include "kernel/record_store.h"
#include "kernel/tracefs_place.h"

namespace karst::kernel {
namespace {

/// What only ftrace has, for the note of a lesser way.
std::string wish(const StateOptions& options, bool own_wakes) {
  std::string text =
      own_wakes ? "who else woke the program's threads, and what else ran," : "who woke whom and what else ran";
  if (options.syscalls) text += ", and the system calls that were asked for,";
  return text + " are not known: ";
}

}  // namespace

struct StateRecorder::Impl {
  explicit Impl(const StateOptions& asked) : options(asked), store(std::max(asked.memory, kLeastStateMemory)) {}

  FtraceOptions ftrace_options() const {
    FtraceOptions how;
    how.syscalls = options.syscalls;
    how.everybody = options.cpus;
    how.bytes = std::max(options.memory, kLeastStateMemory) / 4;
    return how;
  }

  void open_ftrace(bool running) {
    const FtraceOptions how = ftrace_options();
    auto made = Ftrace::open(how);
    if (!made) {
      why_not_ftrace = made.error().message;
      return;
    }
    store.add_of_run(static_cast<std::uint32_t>(program), static_cast<std::uint32_t>(program));
    std::set<pid_t> known;
    const auto more = [&] {
      if (running) return new_threads(program, known, store);
      return known.insert(program).second ? std::vector<pid_t>{program} : std::vector<pid_t>{};
    };
    if (const Status started = (*made)->start(more); !started) {
      why_not_ftrace = started.error().message;
      return;
    }
    use_ftrace(std::move(*made));
    // Where perf events are refused, what ftrace leaves out stays unknown.
    if (auto beside = PerfEvents::open(program, running, PerfRole::kBesideFtrace, how.bytes / 4, store)) {
      if ((*beside)->tells_faults()) flags |= format::kStatesFaultTimes;
      switches = std::move(*beside);
    }
  }

  void use_ftrace(std::unique_ptr<Ftrace> made) {
    collector = std::move(made);
    backend = format::StateBackend::kFtrace;
    flags |=
        format::kStatesWakes | format::kStatesOthers | (options.syscalls ? std::uint32_t{format::kStatesSyscalls} : 0);
  }

  /// Perf events record from now on. ftrace joins them when the program has lived for a while, if it can be had.
  void open_ftrace_later() {
    const auto place = TracefsPlace::find();
    if (!place) {
      why_not_ftrace = place.error().message;
      return;
    }
    why_not_ftrace = fmt::format(
        "ftrace joins a program that has run for {} ms, and had not yet (--sched ftrace has a program wait for it)",
        kFtraceAfterMs);
    perf->note_forks();
    if (perf->record_wakes(program, *place)) flags |= format::kStatesOwnWakes;
    later = std::make_unique<LateFtrace>(ftrace_options());
    if (later->works()) return;
    later.reset();
    why_not_ftrace = "there is no descriptor, or no thread, to have ftrace join by";
  }

  /// What was opened is of no use.
  void give_up(const std::string& why) {
    later.reset();
    switches.reset();
    collector.reset();
    perf = nullptr;
    backend = format::StateBackend::kNone;
    flags = 0;
    why_not_perf = why;
    why_not_ftrace.clear();
  }

  /// The instance is there: ftrace tells what happens from now on, and perf events what it leaves out.
  void join_ftrace() {
    auto made = later->take();
    if (!made) {
      why_not_ftrace = made.error().message;
      return;
    }
    Followed followed(program);
    const auto more = [&] {
      const std::uint64_t now = arch::time_stamp();
      perf->drain(store);
      return followed.further(now, perf->take_forks());
    };
    if (const Status started = (*made)->start(more); !started) {
      why_not_ftrace = started.error().message;
      return;
    }
    const std::uint64_t from = (*made)->began();
    (*made)->tell_from(from);
    perf->tell_beside_from(from);
    store.begin_beside(from);
    store.add({from, 0, 0, 0, 0, format::kStateWakesBegin, 0});
    switches = std::move(collector);
    use_ftrace(std::move(*made));
    joined = true;
  }

  void open_perf(bool running) {
    auto made =
        PerfEvents::open(program, running, PerfRole::kAlone, std::max(options.memory, kLeastStateMemory) / 4, store);
    if (!made) {
      why_not_perf = made.error().message;
      return;
    }
    perf = made->get();
    if (perf->tells_faults()) flags |= format::kStatesFaultTimes;
    collector = std::move(*made);
    backend = format::StateBackend::kPerf;
  }

  std::string note() const {
    switch (backend) {
      case format::StateBackend::kFtrace:
        return {};
      case format::StateBackend::kPerf:
        return wish(options, (flags & format::kStatesOwnWakes) != 0) +
               (options.wanted == Wanted::kPerf ? "--sched ftrace was not asked for" : why_not_ftrace);
      case format::StateBackend::kNone:
        break;
    }
    if (options.wanted == Wanted::kOff) return "switched off (--sched off)";
    std::string text = why_not_perf;
    if (!text.empty() && !why_not_ftrace.empty()) text += "; ";
    return text + why_not_ftrace;
  }

  /// Takes what is there, up to where all of it is.
  void drain() {
    std::uint64_t whole = collector->drain(store);
    if (switches != nullptr) whole = std::min(whole, switches->drain(store));
    store.settle(whole);
  }

  void run() {
    std::vector<pollfd> descriptors;
    while (true) {
      {
        const std::shared_lock no_fork(fork_lock());
        descriptors = {{stop_event.get(), POLLIN, 0}, {later != nullptr ? later->descriptor() : -1, POLLIN, 0}};
        collector->add_descriptors(descriptors);
        if (switches != nullptr) switches->add_descriptors(descriptors);
      }
      wait_for(descriptors, collector->interval_ms());
      {
        const std::shared_lock no_fork(fork_lock());
        const std::lock_guard guard(mutex);
        drain();
        if (ends || descriptors[0].revents != 0) return;
        if (descriptors[1].revents != 0) {
          join_ftrace();
          later.reset();
        }
      }
    }
  }

  /// The log's source as the collector leaves it: how, and why not better.
  void describe(reader::StateSource& source) {
    if (collector != nullptr) source.clock_error_ns = collector->clock_error_ns();
    if (joined) source.clock_error_ns = std::max(source.clock_error_ns, switches->clock_error_ns());
    source.backend = backend;
    source.flags = flags | (collector != nullptr && options.cpus ? std::uint32_t{format::kStatesCpus} : 0U);
    if (collector != nullptr && faults && faults->works()) {
      source.page_faults = faults->read();
      source.flags |= format::kStatesFaults;
    }
    source.note = note();
  }

  StateOptions options;
  pid_t program = -1;
  std::mutex mutex;  // of the collector and the store, while the thread runs
  RecordStore store;
  std::unique_ptr<Collector> collector;
  std::unique_ptr<Collector> switches;  // perf events beside ftrace, if permitted
  PerfEvents* perf = nullptr;           // the collector, while it is that
  std::unique_ptr<LateFtrace> later;
  bool joined = false;  // ftrace came late
  std::optional<FaultCounter> faults;
  std::string why_not_ftrace;
  std::string why_not_perf;
  format::StateBackend backend = format::StateBackend::kNone;
  std::uint32_t flags = 0;
  std::uint64_t begin = 0;
  Descriptor stop_event;
  std::atomic<bool> ends = false;  // where nothing wakes the thread it looks
  std::binary_semaphore begun{0};
  std::thread thread;
  std::thread removal;
};

StateRecorder::StateRecorder(const StateOptions& options) : impl_(std::make_unique<Impl>(options)) {}

StateRecorder::~StateRecorder() {
  if (impl_->thread.joinable()) stop();
  if (impl_->removal.joinable()) impl_->removal.join();
}

void StateRecorder::start(pid_t program) { begin(program, false); }

void StateRecorder::attach(pid_t process) { begin(process, true); }

void StateRecorder::begin(pid_t program, bool running) {
  Impl& r = *impl_;
  if (r.options.wanted == Wanted::kOff) return;
  r.program = program;
  // What only ftrace has and was asked for is to be there from the program's begin: then the program waits.
  const bool may_join = r.options.wanted == Wanted::kAuto && !running && !r.options.syscalls && !r.options.cpus;
  if (may_join) r.open_perf(running);
  if (r.collector != nullptr) {
    r.open_ftrace_later();
  } else {
    if (r.options.wanted != Wanted::kPerf) r.open_ftrace(running);
    if (r.collector == nullptr && !may_join && r.options.wanted != Wanted::kFtrace) r.open_perf(running);
  }
  if (r.collector == nullptr) return;
  r.stop_event = Descriptor(eventfd(0, EFD_CLOEXEC));
  if (!r.stop_event) return r.give_up(std::string("no descriptor to end the recording by: ") + std::strerror(errno));
  r.begin = arch::time_stamp();
  if (!running) r.faults.emplace(program);
  // What a thread does to begin with is not to be forked into either (base/fork_lock.h).
  r.thread = start_thread("karst-states", [&r] {
    r.begun.release();
    r.run();
  });
  if (!r.thread.joinable()) return r.give_up("no thread can be had to record them");
  r.begun.acquire();
}

reader::StateLog StateRecorder::look() {
  Impl& r = *impl_;
  reader::StateLog log;
  if (!r.thread.joinable()) {
    r.describe(log.source);
    return log;
  }
  const std::uint64_t end = arch::time_stamp();
  // What another CPU is just writing is there then.
  constexpr useconds_t kInFlight = 2000;
  usleep(kInFlight);
  std::optional<RecordStore> copy;
  {
    const std::lock_guard guard(r.mutex);
    r.drain();
    copy.emplace(r.store);
    r.collector->finish(*copy);
  }
  log = copy->take(r.begin, end);
  const std::lock_guard guard(r.mutex);
  r.describe(log.source);
  return log;
}

reader::StateLog StateRecorder::stop() {
  Impl& r = *impl_;
  reader::StateLog log;
  if (r.thread.joinable()) {
    const std::uint64_t end = arch::time_stamp();
    r.ends = true;
    eventfd_write(r.stop_event.get(), 1);
    r.thread.join();
    if (r.later != nullptr) r.later->cancel();  // not before: the thread may be about to let go of it
    r.stop_event = Descriptor();
    r.collector->finish(r.store);
    log = r.store.take(r.begin, end);
    r.describe(log.source);
    r.removal = start_thread("karst-states", [switches = std::move(r.switches), collector = std::move(r.collector),
                                              later = std::move(r.later)]() mutable {
      later.reset();
      switches.reset();
      collector.reset();
    });
    return log;
  }
  r.describe(log.source);
  return log;
}

}  // namespace karst::kernel
