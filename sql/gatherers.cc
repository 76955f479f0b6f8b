// SPDX-License-Identifier: MIT
#include "sql/gatherers.h"

#include <limits>
#include <utility>

namespace karst::sql {

void FunctionSums::finish() {
  report = builder->finish();
  builder.reset();
  analysis::sort_by_total(report);
  context.emplace(report);
}

Locks::Locks(const Source& source)
    : trace(source.trace),
      names(source.trace),
      context{source.trace, names, analysis::has_holds(source.trace), answers::Times(source.trace)},
      finder(source.trace) {}

void Locks::chosen(const reader::Thread& thread, const SharedCalls& calls) {
  const auto of = analysis::lock_waits(trace, thread, *calls, nullptr);
  waits.insert(waits.end(), of.begin(), of.end());
  if (context.holds_known) finder.add(thread, *calls);
}

void Locks::finish() {
  holds = finder.take(waits);
  context.holds_known &= !holds.stripped;
  analysis::fill_in_holders(holds, waits);
  reader::Calls holder;
  analysis::find_holders(trace, waits, [&](const reader::Thread& thread) {
    holder = reader::rebuild_calls(trace, thread, std::move(holder));
    return columns::CallColumns(holder);
  });
  locks = analysis::locks_with_use(trace, names, waits, holds, nullptr);
}

Files::Files(const Source& source)
    : trace(source.trace),
      descriptors(source.trace),
      facts{source.trace, descriptors, answers::Times(source.trace)},
      by_file(source.trace, false),
      by_user(source.trace, true) {}

void Files::chosen(const reader::Thread& thread, const SharedCalls& of) {
  for (analysis::FileCall& call : analysis::file_calls(trace, descriptors, thread, *of, nullptr)) {
    by_file.add(call);
    by_user.add(call);
    calls.push_back(std::move(call));
  }
}

void Files::finish() {
  files = by_file.sorted();
  users = by_user.sorted();
}

void Memory::finish() { use = finder.take(std::numeric_limits<std::uint64_t>::max()); }

Samples::Samples(const Source& source)
    : trace(source.trace),
      times(source.trace),
      adder(source.trace, nullptr, false, columns::TickRange()),
      places(source.trace, analysis::SamplesOf::kCpu) {
  places.know_calls_from(columns::TickRange().begin);
}

void Samples::chosen(const reader::Thread& thread, const SharedCalls& calls) {
  places.each(thread, columns::CallColumns(*calls), calls->first_ticks,
              [&](const analysis::SamplePlace& place) { adder.add(thread, *calls, place); });
}

void Samples::finish() {
  if (!is_of_calls()) return;
  places.each_other([&](const analysis::SamplePlace& place) { adder.add_other(place); });
  sums = adder.take();
}

void FrameSets::finish() {
  frames.emplace(trace);
  for (const analysis::Frames::Set& of : frames->sets())
    sets.push_back(answers::frame_set(trace, *frames, of, std::nullopt, 0));
}

}  // namespace karst::sql
