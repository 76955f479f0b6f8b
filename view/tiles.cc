#include "view/tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "view/protocol.h"

namespace karst::view {
namespace {

template <typename T>
void append(std::string& out, const T* values, std::size_t count) {
  if (count != 0) out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
  out.append((8 - out.size() % 8) % 8, '\0');
}

// Of a share between 0 and 1; only nothing is 0.
std::uint8_t eighth_bits(double share) {
  return static_cast<std::uint8_t>(std::clamp(std::ceil(share * 255), 0.0, 255.0));
}

// The mark of an inherited call has its bit taken from it: that it is one shows in api/call.
std::uint8_t drawn_flags(std::uint8_t marks, bool summed) {
  return static_cast<std::uint8_t>((marks & ~kSliceSummed) | (summed ? kSliceSummed : 0));
}

struct TileColumns {
  std::vector<double> begin, duration;
  std::vector<std::uint32_t> function, row, count;
  std::vector<std::uint8_t> flags, density;
};

void add_slice(const TraceIndex& index, const CallColumns& calls, const Slice& slice, std::uint32_t number,
               const Picture& picture, TileColumns& columns) {
  const bool summed = slice.count > 1;
  columns.begin.push_back(index.since_origin(calls.begin[slice.row]));
  columns.duration.push_back(index.to_ns(static_cast<double>(calls.duration[slice.row])));
  columns.function.push_back(calls.function[slice.row]);
  columns.row.push_back(number);
  columns.count.push_back(slice.count);
  columns.flags.push_back(drawn_flags(calls.marks[slice.row], summed));
  columns.density.push_back(summed ? eighth_bits(static_cast<double>(slice.sum) * picture.scale()) : 255);
}

// Which function ran on a CPU: the innermost traced call at the middle of each pixel, as a slice for each run of pixels
// with the same one. A stretch shorter than a pixel is not looked into.
void add_cpu_functions(const TraceIndex& index, const CallColumns& stretches, const std::vector<Slice>& slices,
                       const Picture& picture, TileColumns& columns) {
  for (const Slice& slice : slices) {
    const std::int64_t number = index.thread_of_task(stretches.function[slice.row]);
    if (slice.count != 1 || number < 0 || !picture.wide(stretches.duration[slice.row])) continue;
    const ThreadIndex& thread = index.threads()[static_cast<std::size_t>(number)];
    const std::uint64_t first = std::max(stretches.begin[slice.row], picture.first_tick());
    const std::uint64_t last = std::min(stretches.end(slice.row), picture.end_tick());
    const double step = 1 / picture.scale();
    std::uint32_t function = kNoFunction;
    std::uint64_t from = first;
    const auto flush = [&](std::uint64_t to) {
      if (function != kNoFunction && to > from) {
        columns.begin.push_back(index.since_origin(from));
        columns.duration.push_back(index.to_ns(static_cast<double>(to - from)));
        columns.function.push_back(function);
        columns.row.push_back(static_cast<std::uint32_t>(number));
        columns.count.push_back(1);
        columns.flags.push_back(0);
        columns.density.push_back(255);
      }
      from = to;
    };
    for (std::uint64_t i = 0;; ++i) {
      const std::uint64_t at = first + static_cast<std::uint64_t>(static_cast<double>(i) * step);
      if (at >= last || i > 2 * kMaxWidth) break;
      const std::uint32_t row =
          innermost_at(thread.calls, std::min(at + static_cast<std::uint64_t>(step / 2), last - 1));
      const std::uint32_t now = row == reader::kNoParent ? kNoFunction : index.function_of(thread, row);
      if (now == function) continue;
      flush(at);
      function = now;
    }
    flush(last);
  }
}

void add_strip(const TraceIndex& index, const ThreadRows& wanted, const Picture& picture, std::vector<TileRow>& table,
               TileColumns& columns) {
  const bool cpu = wanted.thread >= kCpuLane;
  const Strip& strip =
      cpu ? index.cpus()[wanted.thread - kCpuLane] : index.threads()[wanted.thread - kStatesOfThread].strip();
  std::vector<Slice> slices;
  const auto row = [&](std::uint32_t depth, std::size_t first) {
    const std::size_t count = columns.begin.size() - first;
    if (count != 0)
      table.push_back({wanted.thread, depth, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)});
  };
  for (std::uint64_t depth = wanted.first_depth; depth < strip.lanes.depths() && depth <= wanted.last_depth; ++depth) {
    slices.clear();
    strip.lanes.draw(strip.calls, static_cast<std::uint32_t>(depth), picture, slices);
    const std::size_t first = columns.begin.size();
    for (const Slice& slice : slices) {
      add_slice(index, strip.calls, slice, strip.source[slice.row], picture, columns);
    }
    row(static_cast<std::uint32_t>(depth), first);
  }
  if (!cpu || wanted.first_depth > kCpuFunction || wanted.last_depth < kCpuFunction || strip.lanes.depths() == 0)
    return;
  slices.clear();
  strip.lanes.draw(strip.calls, kCpuThread, picture, slices);
  const std::size_t first = columns.begin.size();
  add_cpu_functions(index, strip.calls, slices, picture, columns);
  row(kCpuFunction, first);
}

}  // namespace

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

Result<std::string> encode_tiles(const TraceIndex& index, const std::vector<ThreadRows>& rows, double begin, double end,
                                 std::uint32_t width, const FilteredLanes* filtered) {
  const Picture picture{index.to_ticks(begin), index.to_ticks(end), index.origin(), width};
  std::vector<TileRow> table;
  TileColumns columns;
  std::vector<Slice> slices;
  for (const ThreadRows& wanted : rows) {
    if (wanted.thread >= kStatesOfThread) {
      if (filtered == nullptr) add_strip(index, wanted, picture, table, columns);
      continue;
    }
    const ThreadIndex& thread = index.threads()[wanted.thread];
    const Lanes& lanes = filtered == nullptr ? thread.lanes : filtered->threads[wanted.thread];
    const CallColumns& calls = thread.calls;
    for (std::uint64_t depth = wanted.first_depth; depth < lanes.depths() && depth <= wanted.last_depth; ++depth) {
      slices.clear();
      lanes.draw(calls, static_cast<std::uint32_t>(depth), picture, slices);
      if (slices.empty()) continue;
      if (columns.begin.size() + slices.size() > kMaxSlices) {
        return Error{"the answer would have more than " + std::to_string(kMaxSlices) +
                     " slices: ask for fewer threads or depths"};
      }
      table.push_back({wanted.thread, static_cast<std::uint32_t>(depth),
                       static_cast<std::uint32_t>(columns.begin.size()), static_cast<std::uint32_t>(slices.size())});
      for (const Slice& slice : slices) {
        const bool summed = slice.count > 1;
        columns.begin.push_back(index.since_origin(calls.begin[slice.row]));
        columns.duration.push_back(index.to_ns(static_cast<double>(calls.duration[slice.row])));
        columns.function.push_back(index.function_of(thread, slice.row));
        columns.row.push_back(slice.row);
        columns.count.push_back(slice.count);
        columns.flags.push_back(drawn_flags(calls.marks[slice.row], summed));
        columns.density.push_back(summed ? eighth_bits(static_cast<double>(slice.sum) * picture.scale()) : 255);
      }
    }
  }
  std::string out;
  const TileHeader header{kTilesMagic,
                          kProtocolVersion,
                          static_cast<std::uint32_t>(table.size()),
                          static_cast<std::uint32_t>(columns.begin.size()),
                          begin,
                          end};
  append(out, &header, 1);
  append(out, table.data(), table.size());
  append(out, columns.begin.data(), columns.begin.size());
  append(out, columns.duration.data(), columns.duration.size());
  append(out, columns.function.data(), columns.function.size());
  append(out, columns.row.data(), columns.row.size());
  append(out, columns.count.data(), columns.count.size());
  append(out, columns.flags.data(), columns.flags.size());
  append(out, columns.density.data(), columns.density.size());
  return out;
}

std::string encode_minimap(const TraceIndex& index, const std::vector<std::uint32_t>& threads, std::uint32_t width) {
  const MinimapHeader header{kMinimapMagic, kProtocolVersion, static_cast<std::uint32_t>(threads.size()), width};
  std::string out;
  append(out, &header, 1);
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

}  // namespace karst::view
