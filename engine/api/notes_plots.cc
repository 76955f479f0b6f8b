// SPDX-License-Identifier: MIT
// Plots of what programs said: values by name, and series (frames, memory, what was used). Values are read as they are
// asked for; series are made once for a trace.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>

#include "analysis/memory.h"
#include "analysis/selection.h"
#include "analysis/usage.h"
#include "engine/api/notes.h"
#include "engine/api/notes_of_thread.h"

namespace karst::engine {

using format::NoteKind;

namespace {

constexpr int kPlotDecimals = 6;

bool has_values(const ThreadIndex& thread) {
  return thread.has_notes(NoteKind::kInteger) || thread.has_notes(NoteKind::kNumber);
}

bool is_value(const reader::Note& note) {
  return format::kind_of_note(note.kind).group == format::NoteGroup::kValue && note.name != 0;
}

// What one plot has in a pixel.
struct PlotPixel {
  std::uint64_t count = 0;
  double least = 0, most = 0, last = 0;
  std::uint64_t last_ticks = 0;

  void add(double value, std::uint64_t ticks) {
    least = count == 0 ? value : std::min(least, value);
    most = count == 0 ? value : std::max(most, value);
    if (count == 0 || ticks >= last_ticks) {
      last = value;
      last_ticks = ticks;
    }
    ++count;
  }
};

/// The machine's first, then those of processes, then those of threads.
void add_usage(const reader::Trace& trace, std::vector<Series>& to) {
  if (trace.processes().empty()) return;
  const analysis::UsageOwners owners(trace);
  // A level that is not always 0, a total that grows.
  const auto is_used = [](const reader::UsageSeries& of) {
    const std::int64_t none = analysis::kind_of_usage(of).is_total() ? of.points.front().value : 0;
    return std::any_of(of.points.begin(), of.points.end(), [&](const auto& point) { return point.value != none; });
  };
  std::vector<const reader::UsageSeries*> all;
  for (const reader::UsageSeries& of : trace.usage().series)
    if (is_used(of) && (of.pid == 0 || owners.process(of))) all.push_back(&of);
  std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->of < b->of; });
  if (all.size() > kMaxUsagePlots) all.resize(kMaxUsagePlots);
  std::uint32_t number = 0;
  for (const reader::UsageSeries* const of : all) {
    const format::UnitOfUsage& unit = analysis::kind_of_usage(*of).of_unit();
    Series series{owners.process(*of).value_or(0),
                  ++number,
                  SeriesKind::kUsage,
                  {},
                  owners.name(*of),
                  unit.words_shown,
                  of->pid == 0};
    for (const analysis::UsageSample& sample : analysis::usage_samples(*of, trace.clock()))
      series.samples.push_back({sample.ticks, sample.value * unit.factor_shown});
    to.push_back(std::move(series));
  }
}

}  // namespace

std::shared_ptr<const std::vector<Series>> Notes::series_of(const TraceIndex& index, Work* work) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = series_.find(&index); at != series_.end()) return at->second;
  }
  const auto frames = index.make<FrameTracks>(work);
  if (frames == nullptr) return nullptr;
  std::map<std::uint32_t, analysis::MemoryFinder> memory;  // by process
  for (const ThreadIndex& thread : index.threads()) {
    if (!thread.has_notes(NoteKind::kRecord)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr || !go_on(work, notes->size())) return nullptr;
    memory.try_emplace(thread.thread->process, index.trace())
        .first->second.add(*thread.thread, notes->calls(), nullptr);
  }
  auto made = std::make_shared<std::vector<Series>>();
  const Clock& clock = index.trace().clock();
  for (const FrameTrack& track : frames->tracks) {
    Series series{track.process, track.function, SeriesKind::kFrames, {}};
    const CallColumns& calls = track.strip.calls;
    for (std::size_t at = 0; at < calls.size(); ++at)
      if (track.is_marked(at))
        series.samples.push_back({calls.end(at), static_cast<double>(clock.to_ns(calls.duration[at])) / 1e6});
    if (!series.samples.empty()) made->push_back(std::move(series));
  }
  for (auto& [process, finder] : memory) {
    Series series{process, 0, SeriesKind::kMemory, {}};
    for (const analysis::MemoryStep& step : finder.take(std::numeric_limits<std::uint64_t>::max()).steps)
      series.samples.push_back({step.ticks, step.bytes / (1 << 20)});
    if (!series.samples.empty()) made->push_back(std::move(series));
  }
  add_usage(index.trace(), *made);
  const std::lock_guard lock(mutex_);
  return series_[&index] = std::move(made);
}

std::vector<Notes::Plot> Notes::plots(const TraceIndex& index, Work* work) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = plots_.find(&index); at != plots_.end()) return at->second;
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, PlotPixel> found;
  for (const ThreadIndex& thread : index.threads()) {
    if (!has_values(thread)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr || !go_on(work, notes->size())) return {};
    for (std::size_t at = 0; at < notes->size(); ++at) {
      const reader::Note& note = (*notes)[at];
      const double value = is_value(note) ? analysis::note_number(notes->calls(), note) : NAN;
      if (std::isfinite(value)) found[{thread.thread->process, note.name}].add(value, note.ticks);
    }
  }
  std::vector<Plot> plots;
  plots.reserve(found.size());
  for (const auto& [key, sum] : found)
    plots.push_back({key.first, key.second, SeriesKind::kValue, sum.count, sum.least, sum.most, {}, {}, false});
  std::map<std::uint32_t, std::map<std::string_view, analysis::PlotLook>> looks;  // by process
  for (Plot& plot : plots) {
    const reader::Process& process = index.trace().processes()[plot.process];
    auto of = looks.find(plot.process);
    if (of == looks.end()) of = looks.emplace(plot.process, analysis::plot_looks(process)).first;
    const auto look = of->second.find(index.trace().function(process, plot.name).name);
    if (look != of->second.end()) plot.look = look->second;
  }
  const auto all = series_of(index, work);
  if (all == nullptr) return {};
  std::vector<Plot> usage;
  for (const Series& series : *all) {
    PlotPixel sum;
    for (const Series::Sample& sample : series.samples) sum.add(sample.value, sample.ticks);
    std::vector<Plot>& to = series.kind == SeriesKind::kUsage ? usage : plots;
    to.push_back({series.process,
                  series.name,
                  series.kind,
                  sum.count,
                  sum.least,
                  sum.most,
                  {},
                  series.words,
                  series.of_machine});
    to.back().look.unit = series.unit;
  }
  if (plots.size() > kMaxPlots) {
    std::stable_sort(plots.begin(), plots.end(), [](const Plot& a, const Plot& b) { return a.count > b.count; });
    plots.resize(kMaxPlots);
  }
  const auto key = [&](const Plot& plot) {
    return std::tuple(plot.process, plot.kind,
                      std::string_view(index.trace().function(index.trace().processes()[plot.process], plot.name).name),
                      plot.name);
  };
  std::sort(plots.begin(), plots.end(), [&](const Plot& a, const Plot& b) { return key(a) < key(b); });
  plots.insert(plots.end(), std::make_move_iterator(usage.begin()), std::make_move_iterator(usage.end()));
  const std::lock_guard lock(mutex_);
  plots_[&index] = plots;
  return plots;
}

void Notes::write_plots(Json& json, const TraceIndex& index, const std::vector<Plot>& plots,
                        const std::vector<std::uint32_t>& wanted, double begin, double end, std::uint32_t width,
                        Work* work) {
  std::vector<std::vector<PlotPixel>> pixels(wanted.size(), std::vector<PlotPixel>(width));
  std::vector<PlotPixel> before(wanted.size());
  const auto pixel_of = [&](double time) {
    return std::min<std::size_t>(width - 1, static_cast<std::size_t>((time - begin) / (end - begin) * width));
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> place;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Plot& plot = plots[wanted[i]];
    if (plot.kind == SeriesKind::kValue) {
      place[{plot.process, plot.name}] = i;
      continue;
    }
    const auto all = series_of(index, work);
    if (all == nullptr) return;
    const auto series = std::find_if(all->begin(), all->end(), [&](const Series& one) {
      return one.process == plot.process && one.name == plot.name && one.kind == plot.kind;
    });
    if (series == all->end()) continue;
    const auto first =
        std::partition_point(series->samples.begin(), series->samples.end(),
                             [&](const Series::Sample& sample) { return index.since_origin(sample.ticks) < begin; });
    if (first != series->samples.begin()) before[i].add((first - 1)->value, (first - 1)->ticks);
    for (auto at = first; at != series->samples.end(); ++at) {
      const double time = index.since_origin(at->ticks);
      if (time >= end) break;
      pixels[i][pixel_of(time)].add(at->value, at->ticks);
    }
  }
  for (const ThreadIndex& thread : index.threads()) {
    if (!has_values(thread)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr) return;
    const auto find_plot = [&](const reader::Note& note) {
      return is_value(note) ? place.find({thread.thread->process, note.name}) : place.end();
    };
    // Its first note that is in the picture.
    const auto time_of = [&](std::size_t at) { return index.since_origin((*notes)[at].ticks); };
    std::size_t first = 0;
    for (std::size_t low = 0, high = notes->size(); low < high; first = low) {
      const std::size_t middle = low + (high - low) / 2;
      if (time_of(middle) < begin) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    for (std::size_t at = first; at < notes->size() && time_of(at) < end; ++at) {
      if ((at - first) % kWorkStep == kWorkStep - 1 && !go_on(work, kWorkStep)) return;
      const reader::Note& note = (*notes)[at];
      const auto of = find_plot(note);
      const double value = of == place.end() ? NAN : analysis::note_number(notes->calls(), note);
      if (!std::isfinite(value)) continue;
      pixels[of->second][pixel_of(time_of(at))].add(value, note.ticks);
    }
    // What each was when the picture begins.
    std::vector<bool> known(wanted.size());
    std::size_t left = wanted.size();
    for (std::size_t at = first; at != 0 && left != 0; --at) {
      if ((first - at) % kWorkStep == kWorkStep - 1 && !go_on(work, kWorkStep)) return;
      const reader::Note& note = (*notes)[at - 1];
      const auto of = find_plot(note);
      if (of == place.end() || known[of->second]) continue;
      const double value = analysis::note_number(notes->calls(), note);
      if (!std::isfinite(value)) continue;
      known[of->second] = true;
      --left;
      before[of->second].add(value, note.ticks);
    }
  }
  json.open('{').key("plots").open('[');
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    json.open('{').field("plot", wanted[i]).key("before");
    if (before[i].count == 0) {
      json.null();
    } else {
      json.value(before[i].last, kPlotDecimals);
    }
    std::vector<std::uint32_t> at;
    for (std::uint32_t pixel = 0; pixel < width; ++pixel)
      if (pixels[i][pixel].count != 0) at.push_back(pixel);
    json.list("at", at, [](std::uint32_t pixel) { return pixel; });
    const auto numbers = [&](const char* name, double PlotPixel::*of) {
      json.key(name).open('[');
      for (const std::uint32_t pixel : at) json.value(pixels[i][pixel].*of, kPlotDecimals);
      json.close(']');
    };
    json.list("count", at, [&](std::uint32_t pixel) { return pixels[i][pixel].count; });
    numbers("min", &PlotPixel::least);
    numbers("max", &PlotPixel::most);
    numbers("last", &PlotPixel::last);
    json.close('}');
  }
  json.close(']').close('}');
}

}  // namespace karst::engine
