#include "sched/recorder.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arch/cpu.h"
#include "base/fork_lock.h"
#include "sched/collector.h"
#include "sched/ftrace.h"
#include "sched/perf_events.h"
#include "sched/record_store.h"

namespace karst::sched {
namespace {

/// What only ftrace has, for the note of a lesser way.
std::string wish(const StateOptions& options) {
  std::string text = "who woke whom and what else ran";
  if (options.syscalls) text += ", and the system calls that were asked for,";
  return text + " are not known: ";
}

/// Starts a thread that takes no signals: these are for the thread that waits for them.
template <typename Work>
std::thread start_thread(const char* name, Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread made(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(made.native_handle(), name);
  return made;
}

}  // namespace

struct StateRecorder::Impl {
  explicit Impl(const StateOptions& asked) : options(asked), store(std::max(asked.memory, kLeastStateMemory)) {}

  void open_ftrace(pid_t program, bool running) {
    FtraceOptions how;
    how.syscalls = options.syscalls;
    how.everybody = options.cpus;
    how.bytes = std::max(options.memory, kLeastStateMemory) / 4;
    auto made = Ftrace::open(how);
    if (!made) {
      why_not_ftrace = made.error().message;
      return;
    }
    if (const Status started = (*made)->start(program, running, store); !started) {
      why_not_ftrace = started.error().message;
      return;
    }
    collector = std::move(*made);
    // Where perf events are refused, what ftrace leaves out stays unknown.
    if (auto beside = PerfEvents::open(program, running, PerfRole::kBesideFtrace, how.bytes / 4, store))
      switches = std::move(*beside);
    backend = format::StateBackend::kFtrace;
    flags =
        format::kStatesWakes | format::kStatesOthers | (options.syscalls ? std::uint32_t{format::kStatesSyscalls} : 0);
  }

  void open_perf(pid_t program, bool running) {
    auto made =
        PerfEvents::open(program, running, PerfRole::kAlone, std::max(options.memory, kLeastStateMemory) / 4, store);
    if (!made) {
      why_not_perf = made.error().message;
      return;
    }
    collector = std::move(*made);
    backend = format::StateBackend::kPerf;
  }

  std::string note() const {
    switch (backend) {
      case format::StateBackend::kFtrace:
        return {};
      case format::StateBackend::kPerf:
        return wish(options) + (options.wanted == Wanted::kPerf ? "--sched ftrace was not asked for" : why_not_ftrace);
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
        const std::lock_guard no_fork(fork_lock());
        descriptors = {{stop_event, POLLIN, 0}};
        collector->add_descriptors(descriptors);
        if (switches != nullptr) switches->add_descriptors(descriptors);
      }
      poll(descriptors.data(), descriptors.size(), collector->interval_ms());
      {
        const std::scoped_lock guard(fork_lock(), mutex);
        drain();
      }
      if (descriptors[0].revents != 0) return;
    }
  }

  /// The log's source as the collector leaves it: how, and why not better.
  void describe(reader::StateSource& source) {
    if (collector != nullptr) source.clock_error_ns = collector->clock_error_ns();
    source.backend = backend;
    source.flags = flags | (collector != nullptr && options.cpus ? std::uint32_t{format::kStatesCpus} : 0U);
    if (collector != nullptr && faults && faults->works()) {
      source.page_faults = faults->read();
      source.flags |= format::kStatesFaults;
    }
    source.note = note();
  }

  StateOptions options;
  std::mutex mutex;  // of the collector and the store, while the thread runs
  RecordStore store;
  std::unique_ptr<Collector> collector;
  std::unique_ptr<Collector> switches;  // perf events beside ftrace, if permitted
  std::optional<FaultCounter> faults;
  std::string why_not_ftrace;
  std::string why_not_perf;
  format::StateBackend backend = format::StateBackend::kNone;
  std::uint32_t flags = 0;
  std::uint64_t begin = 0;
  int stop_event = -1;
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
  if (r.options.wanted != Wanted::kPerf) r.open_ftrace(program, running);
  if (r.collector == nullptr && r.options.wanted != Wanted::kFtrace) r.open_perf(program, running);
  if (r.collector == nullptr) return;
  r.begin = arch::time_stamp();
  if (!running) r.faults.emplace(program);
  r.stop_event = eventfd(0, EFD_CLOEXEC);
  // What a thread does to begin with is not to be forked into either (base/fork_lock.h).
  r.thread = start_thread("karst-states", [&r] {
    r.begun.release();
    r.run();
  });
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
    eventfd_write(r.stop_event, 1);
    r.thread.join();
    close(r.stop_event);
    r.collector->finish(r.store);
    log = r.store.take(r.begin, end);
    r.describe(log.source);
    r.switches.reset();
    r.removal = start_thread("karst-states", [collector = std::move(r.collector)]() mutable { collector.reset(); });
    return log;
  }
  r.describe(log.source);
  return log;
}

}  // namespace karst::sched
