// SPDX-License-Identifier: MIT
#include "analysis/flows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "analysis/notes.h"
#include "analysis/requests.h"
#include "analysis/values.h"
#include "base/plain_name.h"
#include "format/note.h"
#include "format/values.h"

namespace karst::analysis {

using format::NoteKind;

std::uint64_t Flow::gaps() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) sum += gap(i);
  return sum;
}

std::size_t Flow::longest_gap() const {
  std::size_t longest = steps.size();
  for (std::size_t i = 0; i + 1 < steps.size(); ++i)
    if (longest == steps.size() || gap(i) > gap(longest)) longest = i;
  return longest;
}

std::uint32_t Flow::threads() const {
  std::set<const reader::Thread*> seen;
  for (const FlowStep& step : steps) seen.insert(step.thread);
  return static_cast<std::uint32_t>(seen.size());
}

std::string flow_name(const reader::Trace& trace, const Flow& flow) {
  if (flow.coroutine == 0) return fmt::format("flow {}", flow.id);
  return fmt::format("{} [{:#x}]", plain_name(trace.function(trace.processes()[flow.process], flow.coroutine).name),
                     flow.id);
}

namespace {

/// Whether what is noted of this function's calls is which coroutine they are of.
bool notes_coroutine(const reader::Function& function) {
  const std::string_view values = function.values;
  const std::string_view name = format::kCoroutineFrame;
  return values.starts_with(name) && values.substr(name.size()).starts_with(":x|");
}

}  // namespace

bool notes_coroutines(const reader::Process& process) {
  return std::any_of(process.functions.begin(), process.functions.end(), notes_coroutine);
}

bool tells_of_flows(const reader::Trace& trace, const reader::Thread& thread) {
  return has_note(trace, thread, NoteKind::kFlow) || has_note(trace, thread, NoteKind::kFlowEnd) ||
         (notes_coroutines(trace.processes()[thread.process]) && has_note(trace, thread, NoteKind::kArguments));
}

struct FlowFinder::Impl {
  enum class What : std::uint8_t {
    kStep,
    kFirstStep,  // of a coroutine that is made
    kLastStep,   // said
    kDestroyed,  // no step
  };
  struct Mark {
    std::uint32_t process;
    bool coroutine;
    std::uint64_t id;
    FlowStep step;
    What what;
    bool passes;
  };
  using Filter = std::function<bool(const FlowStep&)>;
  /// Functions of a process that have to do with coroutines.
  struct Names {
    std::vector<CoroutinePart> parts;               // by function
    std::vector<std::uint32_t> coroutines;          // by function: which coroutine's it is + 1; 0: none's
    std::vector<bool> destroyed, made;              // by coroutine: one was, as this trace says
    std::vector<std::vector<std::uint64_t>> begun;  // by coroutine: when one was made, ticks
  };

  explicit Impl(const reader::Trace& of) : trace(of), names(of.processes().size()) {}

  const reader::Trace& trace;
  std::vector<Mark> marks;
  std::vector<std::unique_ptr<Names>> names;  // by process

  Names& names_of(std::uint32_t process);
  std::uint32_t coroutine_of(const Names& of, std::uint32_t function) const {
    return function < of.coroutines.size() ? of.coroutines[function] : 0;
  }
  CoroutinePart part_of(const Names& of, std::uint32_t function) const {
    return function < of.parts.size() ? of.parts[function] : CoroutinePart::kNone;
  }
  void add_said(const reader::Thread& thread, const reader::Calls& calls, const Filter& passes);
  void add_resumptions(const reader::Thread& thread, const reader::Calls& calls, const Filter& passes);
  bool is_another(Names& of, const Flow& flow, const FlowStep& step);
};

FlowFinder::Impl::Names& FlowFinder::Impl::names_of(std::uint32_t process) {
  if (names[process] != nullptr) return *names[process];
  auto made = std::make_unique<Names>();
  const auto& functions = trace.processes()[process].functions;
  made->parts.resize(functions.size());
  made->coroutines.resize(functions.size());
  std::map<std::string, std::uint32_t, std::less<>> known;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (!notes_coroutine(functions[i])) continue;
    made->parts[i] = coroutine_part(functions[i].name);
    const auto number = static_cast<std::uint32_t>(known.size());
    made->coroutines[i] = known.try_emplace(plain_name(functions[i].name), number).first->second + 1;
  }
  // What makes them is called the same.
  for (std::size_t i = 0; i < functions.size() && !known.empty(); ++i) {
    if (made->coroutines[i] != 0 || functions[i].note) continue;
    const auto of = known.find(plain_name(functions[i].name));
    if (of != known.end()) made->coroutines[i] = of->second + 1;
  }
  made->destroyed.resize(known.size());
  made->made.resize(known.size());
  made->begun.resize(known.size());
  names[process] = std::move(made);
  return *names[process];
}

void FlowFinder::Impl::add_said(const reader::Thread& thread, const reader::Calls& calls, const Filter& passes) {
  for (const reader::Note& note : calls.notes) {
    const bool last = note.is(NoteKind::kFlowEnd);
    if (!last && !note.is(NoteKind::kFlow)) continue;
    const std::uint32_t function = note.row == reader::kNoParent ? 0 : calls.function[note.row];
    const FlowStep step{&thread, note.row, function, note.ticks, note.ticks};
    const What what = last ? What::kLastStep : What::kStep;
    marks.push_back({thread.process, false, note_bits(calls, note), step, what, passes(step)});
  }
}

void FlowFinder::Impl::add_resumptions(const reader::Thread& thread, const reader::Calls& calls, const Filter& passes) {
  Names& of = names_of(thread.process);
  if (of.begun.empty()) return;
  const CallValues values(calls);
  // gcc's destroying function calls the one that resumes, or leaves by a jump to it: that is no resumption.
  std::uint64_t destroying = 0;
  std::uint32_t destroyer = reader::kNoParent;
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const std::uint32_t coroutine = coroutine_of(of, calls.function[row]);
    if (coroutine == 0) continue;
    const CoroutinePart part = part_of(of, calls.function[row]);
    if (part == CoroutinePart::kNone) {
      of.begun[coroutine - 1].push_back(calls.begin[row]);
      continue;
    }
    const reader::Note* note = values.arguments(row);
    if (note == nullptr) continue;
    const RecordNumbers frame = record_numbers(calls.bytes_of(*note));
    if (frame.empty()) continue;
    const std::uint64_t end = calls.begin[row] + calls.duration[row];
    const FlowStep step{&thread, row, calls.function[row], calls.begin[row], end};
    const std::uint32_t parent = calls.parent[row];
    const std::uint32_t within = parent == reader::kNoParent ? 0 : calls.function[parent];
    if (part == CoroutinePart::kEnds) {
      of.destroyed[coroutine - 1] = true;
      marks.push_back({thread.process, true, frame[0], step, What::kDestroyed, false});
      destroying = frame[0];
      destroyer = row;
      continue;
    }
    const bool jumped_to =
        destroyer != reader::kNoParent && row == destroyer + 1 && (calls.marks[destroyer] & reader::kCallTail) != 0;
    if (frame[0] == destroying && (part_of(of, within) == CoroutinePart::kEnds || jumped_to)) continue;
    const bool first = coroutine_of(of, within) == coroutine && part_of(of, within) == CoroutinePart::kNone;
    if (first) of.made[coroutine - 1] = true;
    marks.push_back({thread.process, true, frame[0], step, first ? What::kFirstStep : What::kStep, passes(step)});
  }
}

/// Whether a coroutine has begun since the flow's last step, which may have been its last.
bool FlowFinder::Impl::is_another(Names& of, const Flow& flow, const FlowStep& step) {
  const std::uint32_t coroutine = coroutine_of(of, step.function);
  if (coroutine != coroutine_of(of, flow.coroutine)) return true;
  if (coroutine == 0 || of.destroyed[coroutine - 1] || of.made[coroutine - 1]) return false;
  const auto& begun = of.begun[coroutine - 1];
  const auto next = std::upper_bound(begun.begin(), begun.end(), flow.steps.back().end);
  return next != begun.end() && *next <= step.begin;
}

FlowFinder::FlowFinder(const reader::Trace& trace) : impl_(std::make_unique<Impl>(trace)) {}
FlowFinder::~FlowFinder() = default;

void FlowFinder::add(const reader::Thread& thread, const reader::Calls& calls,
                     const std::function<bool(const FlowStep&)>& passes) {
  impl_->add_said(thread, calls, passes);
  impl_->add_resumptions(thread, calls, passes);
}

std::vector<Flow> FlowFinder::take() {
  std::vector<Impl::Mark>& marks = impl_->marks;
  std::stable_sort(marks.begin(), marks.end(), [](const Impl::Mark& a, const Impl::Mark& b) {
    return std::tie(a.process, a.coroutine, a.id, a.step.begin) < std::tie(b.process, b.coroutine, b.id, b.step.begin);
  });
  for (const auto& names : impl_->names)
    for (std::size_t i = 0; names != nullptr && i < names->begun.size(); ++i)
      std::sort(names->begun[i].begin(), names->begun[i].end());
  std::vector<Flow> flows;
  bool goes_on = false;  // the last flow, with further steps
  const Impl::Mark* last = nullptr;
  for (const Impl::Mark& mark : marks) {
    goes_on = goes_on && last->process == mark.process && last->coroutine == mark.coroutine && last->id == mark.id;
    last = &mark;
    if (mark.what == Impl::What::kDestroyed) {
      if (goes_on) {
        flows.back().ended = true;
        flows.back().end = std::max(flows.back().end, mark.step.begin);
      }
      goes_on = false;
      continue;
    }
    if (!goes_on || mark.what == Impl::What::kFirstStep ||
        (mark.coroutine && impl_->is_another(impl_->names_of(mark.process), flows.back(), mark.step))) {
      flows.push_back({mark.id, mark.process, mark.coroutine ? mark.step.function : 0, false, false, 0, {}});
    }
    flows.back().steps.push_back(mark.step);
    flows.back().passes = flows.back().passes || mark.passes;
    flows.back().end = std::max(flows.back().end, mark.step.end);
    flows.back().ended = mark.what == Impl::What::kLastStep;
    goes_on = !flows.back().ended;
  }
  std::stable_sort(flows.begin(), flows.end(), [](const Flow& a, const Flow& b) { return a.begin() < b.begin(); });
  return flows;
}

std::vector<Flow> flows_of(const reader::Trace& trace, const std::vector<const reader::Thread*>& threads) {
  FlowFinder finder(trace);
  for (const reader::Thread* thread : threads)
    if (tells_of_flows(trace, *thread)) finder.add(*thread, reader::rebuild_calls(trace, *thread));
  return finder.take();
}

}  // namespace karst::analysis
