#include "view/tiles.h"

#include <algorithm>
#include <unordered_map>

#include "view/exported_calls.h"
#include "view/protocol.h"

namespace karst::view {
FilteredLanes filter_lanes(const TraceIndex& index, const std::vector<std::uint32_t>& functions, Work* work) {
  std::vector<std::uint8_t> wanted(index.functions().functions().size());
  for (const std::uint32_t function : functions) wanted[function] = 1;
  FilteredLanes filtered;
  filtered.threads.resize(index.threads().size());
  for (const ThreadIndex& thread : index.threads()) expect(work, thread.calls.size());
  run_parallel(index.threads().size(), [&](std::size_t i) {
    const ThreadIndex& thread = index.threads()[i];
    if (thread.calls.size() == 0) return;
    const auto& function_of = index.functions().of_process(thread.thread->process);
    std::vector<std::uint32_t> rows;
    for (std::uint32_t row = 0; row < thread.calls.size(); ++row) {
      if (row % kWorkStep == kWorkStep - 1 && !go_on(work, kWorkStep)) return;
      if (wanted[function_of[thread.calls.function[row]]] != 0) rows.push_back(row);
    }
    filtered.threads[i].build(thread.calls, rows);
  });
  return filtered;
}

Result<std::string> encode_tiles(const TraceIndex& index, const std::vector<TrackLanes>& wanted, double begin,
                                 double end, std::uint32_t width, const FilteredLanes* filtered) {
  TileWriter tiles(index, Picture{index.to_ticks(begin), index.to_ticks(end), index.origin(), width});
  for (const TrackLanes& lanes : wanted) {
    const auto track = find_track(index, lanes.track);
    if (track) track->kind->draw(index, track->number, lanes, filtered, tiles);
    if (tiles.full()) {
      return Error{"the answer would have more than " + std::to_string(kMaxSlices) +
                   " slices: ask for fewer tracks or lanes"};
    }
  }
  return tiles.take(begin, end);
}

std::string encode_minimap(const TraceIndex& index, const std::vector<std::uint32_t>& threads, std::uint32_t width) {
  const MinimapHeader header{kMinimapMagic, kProtocolVersion, static_cast<std::uint32_t>(threads.size()), width};
  std::string out;
  append_column(out, &header, 1);
  const double span = static_cast<double>(index.last_ticks() - index.origin()) + 1;
  const auto border = [&](std::size_t i) {
    return index.origin() + static_cast<std::uint64_t>(span * static_cast<double>(i) / width);
  };
  const std::size_t first = out.size();
  out.resize(first + threads.size() * width);
  run_parallel(threads.size(), [&](std::size_t i) {
    const ThreadIndex& thread = index.threads()[threads[i]];
    for (std::size_t x = 0; x < width; ++x) {
      const std::uint64_t from = border(x);
      const std::uint64_t to = std::max(border(x + 1), from + 1);
      const double covered = static_cast<double>(thread.lanes.covered(thread.calls, from, to));
      out[first + i * width + x] = static_cast<char>(eighth_bits(covered / static_cast<double>(to - from)));
    }
  });
  return out;
}

std::string encode_columns(const Scope& scope) {
  const TraceIndex& index = *scope.index;
  std::vector<ColumnsThread> threads;
  std::vector<std::uint32_t> begin_low, begin_high, duration_low, duration_high, function, parent;
  std::vector<std::uint16_t> depth;
  std::vector<std::uint8_t> flags;
  const auto split = [](std::uint64_t value, std::vector<std::uint32_t>& low, std::vector<std::uint32_t>& high) {
    low.push_back(static_cast<std::uint32_t>(value));
    high.push_back(static_cast<std::uint32_t>(value >> 32U));
  };
  for (const Scope::Part& part : scope.parts) {
    if (part.rows.empty()) continue;
    const CallColumns& calls = part.thread->calls;
    ColumnsThread thread{part.number, 0, static_cast<std::uint32_t>(function.size()), 0, part.thread->forked_at};
    std::unordered_map<std::uint32_t, std::uint32_t> outer;  // rows to those of the export
    std::uint64_t last = index.origin();
    each_row(part.rows, [&](std::uint32_t row) {
      split(calls.begin[row] - last, begin_low, begin_high);
      last = calls.begin[row];
      split(calls.duration[row], duration_low, duration_high);
      function.push_back(part.function(row));
      const std::uint32_t caller = calls.parent[row];
      if (row < part.rows.first) outer.emplace(row, thread.count);
      if (caller == reader::kNoParent) {
        parent.push_back(caller);
      } else if (caller >= part.rows.first) {
        parent.push_back(static_cast<std::uint32_t>(caller - part.rows.first + outer.size()));
      } else {
        const auto at = outer.find(caller);
        parent.push_back(at == outer.end() ? reader::kNoParent : at->second);
      }
      depth.push_back(calls.depth[row]);
      flags.push_back(calls.marks[row]);
      ++thread.count;
    });
    threads.push_back(thread);
  }
  const auto add_strip = [&](std::uint32_t number, const Strip& strip, TickRange range) {
    const auto [from, to] = strip.rows_in(range.begin, range.end);
    if (from == to) return;
    ColumnsThread thread{number, 0, static_cast<std::uint32_t>(function.size()), 0, 0};
    std::uint64_t last = index.origin();
    for (std::size_t row = from; row < to; ++row) {
      split(strip.calls.begin[row] - last, begin_low, begin_high);
      last = strip.calls.begin[row];
      split(strip.calls.duration[row], duration_low, duration_high);
      function.push_back(strip.calls.function[row]);
      parent.push_back(reader::kNoParent);
      depth.push_back(strip.calls.depth[row]);
      flags.push_back(strip.calls.marks[row]);
      ++thread.count;
    }
    threads.push_back(thread);
  };
  for (const Scope::Part& part : scope.parts) {
    add_strip(kColumnsStates + part.number, scope.thread(part).strip(), part.rows.range);
  }
  for (std::uint32_t i = 0; i < index.cpus().size() && !scope.parts.empty(); ++i) {
    add_strip(kColumnsCpus + i, index.cpus()[i], scope.parts.front().rows.range);
  }
  const TickRange range = scope.parts.empty() ? TickRange{} : scope.parts.front().rows.range;
  const ColumnsHeader header{kColumnsMagic,
                             kProtocolVersion,
                             static_cast<std::uint32_t>(threads.size()),
                             static_cast<std::uint32_t>(function.size()),
                             static_cast<std::uint32_t>(scope.functions),
                             scope.has_states ? 1U : 0U,
                             index.trace().clock().ticks_per_second,
                             index.origin(),
                             range.begin,
                             range.end};
  std::string out;
  append_column(out, &header, 1);
  append_column(out, threads.data(), threads.size());
  for (const auto* column : {&begin_low, &begin_high, &duration_low, &duration_high, &function, &parent}) {
    append_column(out, column->data(), column->size());
  }
  append_column(out, depth.data(), depth.size());
  append_column(out, flags.data(), flags.size());
  return out;
}

}  // namespace karst::view
