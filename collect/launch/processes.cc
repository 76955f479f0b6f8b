// SPDX-License-Identifier: MIT
#include "collect/launch/processes.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/process_stat.h"
#include "base/sealed_memory.h"
#include "collect/launch/attach.h"
#include "format/handlers.h"

namespace karst::collect {

using namespace format;

namespace {

constexpr rlim_t kKeptDescriptors = 32;

Descriptor open_process(pid_t pid) { return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

/// Clock ticks after boot at which a process was started; 0 when it is not there.
std::uint64_t start_of(pid_t pid) { return ProcessStat::of(pid).number(ProcessStat::kStartTicks).value_or(0); }

/// Below the limit on descriptors some are kept for processes to report themselves by.
bool descriptors_are_short(int latest) {
  rlimit limit{};
  return latest < 0 ||
         (getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(latest) + kKeptDescriptors > limit.rlim_cur);
}

}  // namespace

MappedArena mapped_arena(const std::vector<Mapping>& mappings, const std::set<std::uint64_t>& inodes) {
  MappedArena found = MappedArena::kNoRuntime;
  for (const Mapping& m : mappings) {
    if (found == MappedArena::kNoRuntime && m.is_runtime()) found = MappedArena::kNone;
    if (m.rights != "rw-s") continue;
    if (m.path.starts_with("/memfd:karst-arena")) found = MappedArena::kOther;
    if (inodes.contains(m.inode)) return MappedArena::kOneOfThese;  // it may lie in any file
  }
  return found;
}

Processes::Processes(FunctionChooser& chooser) : chooser_(chooser) {}

Processes::Watched* Processes::latest(pid_t pid) {
  for (auto w = watched_.rbegin(); w != watched_.rend(); ++w)
    if (w->pid == pid && w->is_last_image && !w->in_vain) return &*w;
  return nullptr;
}

void Processes::arrive(Arrival arrival) {
  Watched* before = latest(arrival.pid);
  if (arrival.kind == HelloKind::kArrived) {
    // The process waits; what it says of itself is bounded by its arena.
    const bool chooses =
        before != nullptr && before->process.history.arena() != nullptr &&
        chooser_.choose(*before->process.history.arena(), arrival.first_function, arrival.function_count);
    arrival.reply(chooses ? 0U : std::uint32_t{format::kGoKeepsAll});
    return;
  }
  if (before != nullptr && arrival.outcome == HelloOutcome::kImpossible) {
    before->in_vain = true;
    before->pidfd = Descriptor();
    before->unwatched = false;
    return;
  }
  // A process that reports again has called exec, or is another one with the number of one that has ended.
  if (before != nullptr) {
    end(*before);
    before->is_last_image = false;
  }
  if (arrival.outcome == HelloOutcome::kTracing) begin(std::move(arrival));
}

void Processes::find_functions(Arrival asker) {
  Watched* process = latest(asker.pid);
  if (process == nullptr || process->process.history.arena() == nullptr)
    return asker.answer(AnswerOutcome::kUnknownProcess, {});
  const choice::FunctionFilter filter({asker.pattern});
  std::vector<format::FoundFunction> found;
  std::string text(1, '\0');
  for (const auto& [id, name] :
       chooser_.find_and_keep(*process->process.history.arena(), filter, asker.first_function, asker.function_count)) {
    if (found.size() == format::kMostHandled) break;
    found.push_back({id, static_cast<std::uint32_t>(text.size())});
    text.append(name, 0, std::min<std::size_t>(name.find('\0'), format::kMostHandledName)).push_back('\0');
  }
  if (found.empty() && !filter.complaint().empty()) return asker.answer(AnswerOutcome::kBadPattern, {});
  const format::FoundFunctions head{static_cast<std::uint32_t>(found.size()), static_cast<std::uint32_t>(text.size())};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(reinterpret_cast<const char*>(found.data()), found.size() * sizeof found[0]).append(text);
  const Descriptor memory = sealed_memory("karst-answer", std::as_bytes(std::span(bytes)));
  asker.answer(memory ? AnswerOutcome::kGiven : AnswerOutcome::kImpossible, memory);
}

void Processes::begin(Arrival arrival) {
  std::erase_if(silent_, [&](const Silent& s) { return s.pid == arrival.pid; });
  auto view = ArenaView::of_descriptor(arrival.arena.get());
  if (!view) {
    problems_.push_back({"process " + std::to_string(arrival.pid) + ": " + view.error().message, 1});
    return;
  }
  // Whose arena it is says its header; that must be who the kernel says that the message is from.
  const std::uint32_t claimed = view->pid();
  const std::uint32_t really = own_number(arrival.pid);
  if (claimed != arrival.own_pid || (really != 0 && claimed != really)) {
    problems_.push_back({"process " + std::to_string(arrival.pid) + " sent the trace memory of another process", 1});
    return;
  }
  const bool forked = arrival.kind == HelloKind::kForked;
  if (!forked) chooser_.choose(*view, 1, view->function_count());
  inodes_.insert(view->inode());
  Descriptor pidfd = open_process(arrival.pid);
  const bool gone = !pidfd && errno == ESRCH;
  const bool unwatched = !gone && descriptors_are_short(pidfd.get());
  if (unwatched) pidfd = Descriptor();
  const std::uint32_t own_pid = view->pid();
  const std::uint64_t start_ticks = view->start().ticks;
  std::int64_t parent = -1;
  for (std::size_t i = watched_.size(); !forked && i-- != 0 && parent < 0;)
    if (watched_[i].pid == arrival.pid || watched_[i].arena_pid == view->parent_pid())
      parent = static_cast<std::int64_t>(i);
  RecordedProcess process{History(std::move(*view)), -1, 0, forked, parent, {}, {}};
  if (growing_) process.history.keep_all(growing_);
  watched_.push_back(
      {arrival.pid, std::move(pidfd), own_pid, start_ticks, std::move(process), {}, true, false, false, unwatched});
  arrival.reply();
  if (forked) inherit(watched_.back(), arrival.origin);
  if (ProcessStream* const stream = watched_.back().process.history.stream(); stream != nullptr && forked)
    stream->begin_forked(watched_.back().process.inherited);
  if (gone) end(watched_.back());
}

// What the child has on its stack is what its parent's thread had when it forked. It is looked up now, before the
// parent overwrites it.
void Processes::inherit(Watched& child, const ForkOrigin& origin) {
  child.process.inherited.forget();
  for (std::size_t i = watched_.size(); i-- != 0;) {
    Watched& parent = watched_[i];
    if (&parent == &child || parent.start_ticks != origin.start_ticks || parent.arena_pid != origin.pid) continue;
    child.process.parent = static_cast<std::int64_t>(i);
    if (origin.ticks == 0) return;
    child.process.inherited =
        origin.tid == 0 ? OpenCalls() : parent.open_calls.at(parent.process.history, origin.tid, origin.ticks);
    child.open_calls.begin_with(child.arena_pid, child.process.inherited);
    return;
  }
}

// What it wanted to say nobody could read.
void Processes::note_dropped_messages(Watched& w) {
  const ArenaView* arena = w.process.history.arena();
  const std::uint64_t dropped = arena != nullptr ? arena->control_now().dropped_messages : 0;
  if (dropped == 0 || w.dropped_noted) return;
  w.dropped_noted = true;
  problems_.push_back({"process " + std::to_string(w.pid) +
                           " could not say something of its tracing: its stderr was closed, full, or another file",
                       dropped});
}

void Processes::end(Watched& w) {
  note_dropped_messages(w);
  if (w.process.end_ticks == 0) w.process.end_ticks = read_clock_pair().ticks;
  w.pidfd = Descriptor();
  w.unwatched = false;
  if (growing_ && (growing_->grows() || growing_->rotates())) {
    w.process.history.finish_stream();
    w.process.history.drain_and_describe(outside_of(w));
  }
  if (w.process.forked) w.process.history.detach();
}

void Processes::add_descriptors(std::vector<pollfd>& descriptors) const {
  for (const Watched& w : watched_)
    if (w.pidfd) descriptors.push_back({w.pidfd.get(), POLLIN, 0});
  for (const Silent& s : silent_) descriptors.push_back({s.pidfd.get(), POLLIN, 0});
}

void Processes::notice_ends(std::span<const pollfd> descriptors) {
  std::set<int> ended;
  for (const pollfd& p : descriptors)
    if ((p.revents & POLLIN) != 0) ended.insert(p.fd);
  if (ended.empty()) return;
  for (Watched& w : watched_)
    if (w.pidfd && ended.contains(w.pidfd.get())) end(w);
  std::erase_if(silent_, [&](const Silent& s) { return ended.contains(s.pidfd.get()); });
}

bool Processes::look_after_unwatched() {
  bool any = false;
  for (Watched& w : watched_) {
    if (!w.unwatched) continue;
    any = true;  // also when it has just ended: that may have been the last thing to wait for
    if (ProcessStat::of(w.pid).is_gone()) end(w);
  }
  return any;
}

std::size_t Processes::left() const {
  return silent_.size() + static_cast<std::size_t>(std::count_if(watched_.begin(), watched_.end(),
                                                                 [](const Watched& w) { return w.left(); }));
}

bool Processes::find_silent_children() {
  const std::uint64_t first = start_of(getpid());
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"), closedir);
  between_arenas_ = false;
  if (!directory || inodes_.empty()) return false;
  while (const dirent* entry = readdir(directory.get())) {
    pid_t pid = 0;
    const std::string_view name = entry->d_name;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc() || pid == getpid()) continue;
    struct stat status {};
    if (fstatat(dirfd(directory.get()), entry->d_name, &status, 0) != 0) continue;
    if (geteuid() != 0 && status.st_uid != geteuid()) continue;  // root's program may run as another user
    if (start_of(pid) < first) continue;
    const Watched* known = latest(pid);
    if (known != nullptr && known->left()) continue;
    const MappedArena mapped = mapped_arena(read_maps("/proc/" + std::to_string(pid) + "/maps"), inodes_);
    between_arenas_ = between_arenas_ ||
                      (known == nullptr && mapped != MappedArena::kNoRuntime && mapped != MappedArena::kOneOfThese);
    if (mapped != MappedArena::kOneOfThese) continue;
    Descriptor pidfd = open_process(pid);
    if (pidfd) silent_.push_back({pid, std::move(pidfd)});
  }
  return !silent_.empty();
}

RecordedProcess* Processes::find(pid_t pid) {
  Watched* watched = latest(pid);
  return watched != nullptr ? &watched->process : nullptr;
}

RecordedProcess* Processes::find(const ForkOrigin& origin) {
  for (auto w = watched_.rbegin(); w != watched_.rend(); ++w)
    if (w->start_ticks == origin.start_ticks && w->arena_pid == origin.pid) return &w->process;
  return nullptr;
}

pid_t Processes::parent_of(pid_t pid) {
  const Watched* watched = latest(pid);
  const std::int64_t parent = watched != nullptr ? watched->process.parent : -1;
  return parent >= 0 ? watched_[static_cast<std::size_t>(parent)].pid : 0;
}

ProcessStream::Outside Processes::outside_of(const Watched& w) {
  return {w.process.forked, static_cast<std::uint32_t>(w.process.parent + 1), w.process.wait_status,
          w.process.end_ticks};
}

// Those that have ended are of the file that ends, and need not be known any longer.
void Processes::next_file() {
  for (Watched& w : watched_) w.process.history.end_file(outside_of(w));
  growing_->end_file();
  std::vector<std::int64_t> place(watched_.size(), -1);
  std::vector<Watched> living;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    Watched& w = watched_[i];
    if (!w.left()) continue;
    if (w.process.parent >= 0) w.process.parent = place[static_cast<std::size_t>(w.process.parent)];
    place[i] = static_cast<std::int64_t>(living.size());
    living.push_back(std::move(w));
  }
  watched_ = std::move(living);
  for (Watched& w : watched_) w.process.history.begin_file();
}

int Processes::drain() {
  if (!growing_) return -1;
  bool any = false;
  for (Watched& w : watched_)
    if (w.left()) any = w.process.history.drain_if_due() || any;
  if (growing_->is_flush_due()) {
    for (Watched& w : watched_)
      if (w.left()) w.process.history.drain_and_describe(outside_of(w));
    growing_->flush();
    if (growing_->is_file_full() && left() != 0) next_file();
  }
  return growing_->look_again_after(any);
}

void Processes::for_each(const std::function<void(std::size_t, RecordedProcess&)>& use) {
  for (std::size_t i = 0; i < watched_.size(); ++i) use(i, watched_[i].process);
}

std::vector<RecordedProcess> Processes::take(pid_t program, std::int32_t wait_status) {
  std::vector<RecordedProcess> all;
  std::vector<std::int64_t> place(watched_.size(), -1);
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    Watched& w = watched_[i];
    if (w.in_vain && !growing_) continue;  // of a trace that grows it has a number
    note_dropped_messages(w);
    if (w.pid == program && w.is_last_image) w.process.wait_status = wait_status;
    if (w.process.parent >= 0) w.process.parent = place[static_cast<std::size_t>(w.process.parent)];
    place[i] = static_cast<std::int64_t>(all.size());
    all.push_back(std::move(w.process));
  }
  watched_.clear();
  return all;
}

}  // namespace karst::collect
