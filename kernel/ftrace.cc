// SPDX-License-Identifier: MIT
#include "kernel/ftrace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "arch/cpu.h"
#include "base/clock.h"
#include "format/trace.h"
#include "kernel/cpus.h"
#include "kernel/libtracefs.h"

// C without a word for C++.
extern "C" {
#include <kbuffer.h>
}

namespace karst::kernel {
namespace {

constexpr std::size_t kSmallestBuffer = std::size_t{64} << 10;
constexpr std::size_t kLargestBuffer = std::size_t{4} << 20;
constexpr std::uint64_t kCloneThread = 0x10000;
constexpr std::uint64_t kPreempted = 0x100;  // TASK_REPORT_MAX

constexpr std::string_view kMarker = "karst clock ";
constexpr int kMarkersAtStart = 16;

std::string_view text_at(std::span<const std::byte> record, const Field& field) {
  if (field.offset + std::uint64_t{field.size} > record.size()) return {};
  const auto* text = reinterpret_cast<const char*>(record.data()) + field.offset;
  return {text, strnlen(text, field.size)};
}

/// The kernel's letters, as `ps` shows them, from the bits of prev_state.
char letter_of(std::uint64_t state) {
  constexpr std::string_view kLetters = "SDTtXZPI";
  const auto bits = state & 0xff;
  return bits == 0 ? 'R' : kLetters[static_cast<std::size_t>(std::countr_zero(bits))];
}

}  // namespace

Result<std::unique_ptr<Ftrace>> Ftrace::open(const FtraceOptions& options) {
  auto place = TracefsPlace::find();
  if (!place) return place.error();
  remove_orphans(*place);
  std::unique_ptr<Ftrace> made(new Ftrace(std::move(*place)));
  if (tracefs_set_tracing_dir(const_cast<char*>(made->place_.path().c_str())) != 0)
    return Error{"ftrace cannot be used: " + made->place_.path() + " is no tracefs to libtracefs"};
  // A run before this one in the same process may have left a name that is not removed yet.
  made->instance_ = tracefs_instance_create(own_instance_name().c_str());
  if (made->instance_ == nullptr)
    return Error{std::string("ftrace has no instance for us (") + std::strerror(errno) + ")"};
  if (const Status done = made->set_up(options); !done) return done.error();
  made->options_.no_fork = nullptr;
  return made;
}

Ftrace::~Ftrace() {
  for (const Cpu& cpu : cpus_) tracefs_cpu_close(cpu.reader);
  if (page_ != nullptr) kbuffer_free(page_);
  if (marker_ >= 0) close(marker_);
  if (instance_ != nullptr) {
    tracefs_trace_off(instance_);
    // The kernel removes an instance faster whose events are off already: it waits for all CPUs a few times less.
    for (const std::string& event : enabled_) tracefs_instance_file_write(instance_, event.c_str(), "0");
    // A fork of ours (collect/launch/standby.h, sandbox/sandbox.h) has its files open until it ends or has closed them.
    constexpr int kTries = 300;
    constexpr useconds_t kPause = 10'000;
    for (int i = 0; i < kTries && tracefs_instance_destroy(instance_) != 0 && errno == EBUSY; ++i) usleep(kPause);
    tracefs_instance_free(instance_);
  }
}

Status Ftrace::set_up(const FtraceOptions& options) {
  options_ = options;
  if (const Status read = read_layout(); !read) return read.error();
  const auto refused = [](const char* what) {
    return Error{fmt::format("ftrace refuses {} ({})", what, std::strerror(errno))};
  };
  const auto numbers = online_cpus();
  const std::size_t each =
      std::clamp(options.bytes / std::max<std::size_t>(1, numbers.size()), kSmallestBuffer, kLargestBuffer);
  // Rings that are off are resized after a wait of the kernel's for all CPUs, so they are switched off after it.
  if (!write_slowly("buffer_size_kb", std::to_string(each >> 10))) return refused("memory for its rings");
  tracefs_trace_off(instance_);
  if (!write_slowly("trace_clock", "x86-tsc")) return refused("the clock x86-tsc");
  marker_ = ::open(path_of("trace_marker").c_str(), O_WRONLY | O_CLOEXEC);
  if (marker_ < 0) return refused("markers, by which its clock is compared with ours");
  page_ = kbuffer_alloc(KBUFFER_LSIZE_SAME_AS_HOST, KBUFFER_ENDIAN_SAME_AS_HOST);
  for (const std::uint16_t number : numbers) {
    tracefs_cpu* reader = tracefs_cpu_open(instance_, number, true);
    if (reader == nullptr) return refused("to be read");
    cpus_.push_back({number, reader, 0});
    buffer_.resize(std::max<std::size_t>(buffer_.size(), static_cast<std::size_t>(tracefs_cpu_read_size(reader))));
  }
  return page_ != nullptr ? Status(Unit{}) : Status(Error{"no memory to read ftrace"});
}

std::string Ftrace::path_of(const char* file) const {
  return place_.path() + "/instances/" + own_instance_name() + "/" + file;
}

/// What the kernel waits in for all CPUs, or for memory.
bool Ftrace::write_slowly(const char* file, const std::string& text) const {
  const Descriptor to(::open(path_of(file).c_str(), O_WRONLY | O_CLOEXEC));
  if (!to) return false;
  if (options_.no_fork != nullptr) options_.no_fork->unlock();
  const bool written = write(to.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (options_.no_fork != nullptr) options_.no_fork->lock();
  errno = error;
  return written;
}

Status Ftrace::read_layout() {
  EventFormats formats(place_);
  const auto event = [&](const char* system, const char* name) { return formats.event(system, name); };
  const auto field = [&](tep_event* of, const char* name) { return formats.field(of, name); };
  const auto id = EventFormats::id;
  Layout& l = layout_;
  tep_event* switched = event("sched", "sched_switch");
  l.switch_id = id(switched);
  l.type = field(switched, "common_type");
  l.flags = field(switched, "common_flags");
  l.pid = field(switched, "common_pid");
  l.prev_comm = field(switched, "prev_comm");
  l.prev_pid = field(switched, "prev_pid");
  l.prev_state = field(switched, "prev_state");
  l.next_comm = field(switched, "next_comm");
  l.next_pid = field(switched, "next_pid");
  tep_event* waking = event("sched", "sched_waking");
  l.waking_id = id(waking);
  l.woken_comm = field(waking, "comm");
  l.woken_pid = field(waking, "pid");
  tep_event* made = event("task", "task_newtask");
  l.newtask_id = id(made);
  l.new_pid = field(made, "pid");
  l.new_flags = field(made, "clone_flags");
  l.ended_id = id(event("sched", "sched_process_exit"));
  tep_event* renamed = event("task", "task_rename");
  l.rename_id = id(renamed);
  l.renamed_pid = field(renamed, "pid");
  l.renamed_comm = field(renamed, "newcomm");
  tep_event* marker = event("ftrace", "print");
  l.marker_id = id(marker);
  l.marker_text = field(marker, "buf");
  if (!formats.missing().empty())
    return Error{"ftrace's events are not as we know them: " + formats.missing() + " is missing"};
  if (options_.syscalls) {
    tep_event* enter = event("raw_syscalls", "sys_enter");
    tep_event* leave = event("raw_syscalls", "sys_exit");
    l.enter_id = id(enter);
    l.exit_id = id(leave);
    l.enter_nr = field(enter, "id");
    l.exit_nr = field(leave, "id");
  }
  return Unit{};
}

Status Ftrace::follow(const MoreThreads& more) {
  const auto refused = [](const std::string& what) {
    return Error{fmt::format("ftrace refuses {} ({})", what, std::strerror(errno))};
  };
  // Threads that are made from here on are followed if their maker is.
  if ((!options_.everybody || options_.syscalls) &&
      tracefs_instance_file_write(instance_, "options/event-fork", "1") < 0)
    return refused("to follow forks");
  // Everybody's system calls are recorded then. Ours, and those of the thread that we are about to make, would be made
  // by reading them; switches to and from us stay. Kernels before 5.7 cannot do that.
  if (options_.everybody && options_.syscalls)
    tracefs_instance_file_write(instance_, "set_event_notrace_pid", std::to_string(gettid()).c_str());
  std::vector<pid_t> threads = more();
  if (threads.empty()) return Error{"the process has ended"};
  for (bool first = true; !threads.empty(); first = false) {
    const std::string list = fmt::format("{}", fmt::join(threads, " "));
    const auto write = first ? tracefs_instance_file_write : tracefs_instance_file_append;
    if (!options_.everybody && write(instance_, "set_event_pid", list.c_str()) < 0)
      return refused("a filter by process");
    threads = more();
  }
  return Unit{};
}

Status Ftrace::start(const MoreThreads& more) {
  const auto refused = [](const std::string& what) {
    return Error{fmt::format("ftrace refuses {} ({})", what, std::strerror(errno))};
  };
  if (const Status followed = follow(more); !followed) return followed.error();
  // tracefs_event_enable() looks through all events that there are for one that has this name.
  const auto enable = [this](const char* event) {
    enabled_.push_back(std::string("events/") + event + "/enable");
    return tracefs_instance_file_write(instance_, enabled_.back().c_str(), "1") >= 0;
  };
  for (const char* event : {"sched/sched_switch", "sched/sched_waking", "sched/sched_process_exit", "task/task_newtask",
                            "task/task_rename"})
    if (!enable(event)) return refused(event);
  if (options_.syscalls && (!enable("raw_syscalls/sys_enter") || !enable("raw_syscalls/sys_exit")))
    return refused("system calls");
  for (Cpu& cpu : cpus_) cpu.last_ticks = arch::time_stamp();
  if (tracefs_trace_on(instance_) < 0) return refused("to start");
  began_ = arch::time_stamp();
  since_ = read_clock_pair();
  for (int i = 0; i < kMarkersAtStart; ++i) mark();
  if (marked_ == 0) return refused("markers, by which its clock is compared with ours");
  return Unit{};
}

void Ftrace::mark() {
  char text[32];
  const auto end = fmt::format_to_n(text, sizeof text, "{}{}", kMarker, marked_).size;
  Marker& m = markers_[marked_ % markers_.size()];
  m.before = arch::time_stamp();
  arch::finish_before();
  if (write(marker_, text, end) != static_cast<ssize_t>(end)) return;
  arch::finish_before();
  m.after = arch::time_stamp();
  ++marked_;
}

void Ftrace::take_marker(std::uint64_t ticks, std::string_view text) {
  if (!text.starts_with(kMarker)) return;
  std::uint32_t number = 0;
  std::from_chars(text.data() + kMarker.size(), text.data() + text.size(), number);
  if (number >= marked_ || marked_ - number >= markers_.size()) return;
  const Marker& m = markers_[number % markers_.size()];
  most_ahead_ = std::min(most_ahead_, static_cast<std::int64_t>(ticks - m.before));
  most_behind_ = std::max(most_behind_, static_cast<std::int64_t>(ticks - m.after));
}

std::uint32_t Ftrace::clock_error_ns() const {
  constexpr std::uint32_t kNotKnown = 0xffffffffU;
  if (most_behind_ == std::numeric_limits<std::int64_t>::min()) return kNotKnown;
  const ClockPair now = read_clock_pair();
  if (now.ticks <= since_.ticks) return kNotKnown;
  const double ns_per_tick = static_cast<double>(now.monotonic_raw_ns - since_.monotonic_raw_ns) /
                             static_cast<double>(now.ticks - since_.ticks);
  const auto ticks = static_cast<double>(std::max(std::abs(most_ahead_), std::abs(most_behind_)));
  return static_cast<std::uint32_t>(std::min(std::ceil(ticks * ns_per_tick), double{kNotKnown}));
}

std::uint64_t Ftrace::drain(RecordStore& store) {
  const std::uint64_t now = arch::time_stamp();
  mark();
  for (Cpu& cpu : cpus_) drain(cpu, store);
  // What another CPU was just writing when we looked comes the next time.
  constexpr std::uint64_t kSlack = 100'000'000;  // ticks: some 30 ms
  return now - kSlack;
}

void Ftrace::drain(Cpu& cpu, RecordStore& store) {
  while (tracefs_cpu_read(cpu.reader, buffer_.data(), true) > 0) {
    if (kbuffer_load_subbuffer(page_, buffer_.data()) != 0) return;
    unsigned long long ticks = 0;
    const void* record = kbuffer_read_event(page_, &ticks);
    const int missed = kbuffer_missed_events(page_);
    if (missed != 0) {
      store.add({cpu.last_ticks, 0, 0, 0, cpu.number, format::kStateLostBegin, 0});
      const std::uint64_t until = record != nullptr ? ticks : cpu.last_ticks;
      // The kernel does not always know how many.
      store.add(
          {until, 0, 0, missed > 0 ? static_cast<std::uint32_t>(missed) : 1U, cpu.number, format::kStateLostEnd, 0});
    }
    for (; record != nullptr; record = kbuffer_next_event(page_, &ticks)) {
      const auto size = static_cast<std::size_t>(std::max(0, kbuffer_event_size(page_)));
      take(cpu, ticks, {static_cast<const std::byte*>(record), size}, store);
      cpu.last_ticks = ticks;
    }
  }
}

void Ftrace::take(Cpu& cpu, std::uint64_t ticks, std::span<const std::byte> record, RecordStore& store) {
  const Layout& l = layout_;
  const auto number = [&](const Field& f) { return number_at(record, f); };
  const auto tid = [&](const Field& f) { return static_cast<std::uint32_t>(number(f)); };
  const auto text = [&](const Field& f) { return text_at(record, f); };
  const auto type = number(l.type);
  if (ticks < tell_from_ && type != l.marker_id) return;
  const std::uint32_t current = tid(l.pid);
  format::StateRecord made{ticks, current, 0, 0, cpu.number, 0, 0};
  if (type == l.switch_id) {
    made.tid = tid(l.prev_pid);
    made.other = tid(l.next_pid);
    const std::uint64_t state = number(l.prev_state);
    const char letter = letter_of(state);
    made.value = static_cast<unsigned char>(letter) |
                 ((state & kPreempted) != 0 || letter == 'R' ? std::uint32_t{format::kLeaveRunnable} : 0);
    made.kind = format::kStateLeaveCpu;
    if (made.tid != 0) store.name(made.tid, text(l.prev_comm), true);
    if (made.other != 0) store.name(made.other, text(l.next_comm), true);
  } else if (type == l.waking_id) {
    made.tid = tid(l.woken_pid);
    made.other = current;
    made.value = (number(l.flags) & kInInterrupt) != 0 ? 1 : 0;
    made.kind = format::kStateWaking;
  } else if (type == l.newtask_id) {
    made.tid = tid(l.new_pid);
    made.other = current;
    made.kind = format::kStateNewThread;
    made.value = (number(l.new_flags) & kCloneThread) != 0 ? 1 : 0;
  } else if (type == l.ended_id) {
    made.kind = format::kStateExit;
  } else if (type == l.rename_id) {
    store.name(tid(l.renamed_pid), text(l.renamed_comm), true);
    return;
  } else if (type == l.marker_id) {
    const auto size = static_cast<std::uint32_t>(record.size());
    if (size > l.marker_text.offset)
      take_marker(ticks, text_at(record, {l.marker_text.offset, size - l.marker_text.offset}));
    return;
  } else if (l.enter_id != 0 && (type == l.enter_id || type == l.exit_id)) {
    made.value = static_cast<std::uint32_t>(number(type == l.enter_id ? l.enter_nr : l.exit_nr));
    made.kind = type == l.enter_id ? format::kStateSyscallEnter : format::kStateSyscallExit;
  } else {
    return;
  }
  store.add(made);
}

}  // namespace karst::kernel
