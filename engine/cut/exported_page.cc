// SPDX-License-Identifier: MIT
#include "engine/cut/exported_page.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include "base/json.h"
#include "engine/api/api.h"
#include "engine/api/source.h"
#include "engine/cut/cut.h"
#include "engine/index/scope.h"
#include "engine/protocol.h"
#include "engine/tiles/tiles.h"

namespace karst::engine {
namespace {

constexpr std::string_view kPlace = "<!--karst-embedded-->";

// RFC 4648, with padding.
std::string base64(std::string_view bytes) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8U | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += i <= count ? kLetters[group >> (18 - 6 * i) & 63U] : '=';
  }
  return text;
}

// RFC 1952. Empty when memory is out.
std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kGzip = 16;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string out;
  std::string buffer(256 << 10, '\0');
  std::size_t at = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    // zlib counts in 32 bits.
    const std::size_t size = std::min<std::size_t>(bytes.size() - at, std::size_t{1} << 30U);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
    stream.avail_in = static_cast<uInt>(size);
    const bool last = at + size == bytes.size();
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      status = deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0 && status == Z_OK);
    at += size - stream.avail_in;
  }
  deflateEnd(&stream);
  return status == Z_STREAM_END ? out : std::string();
}

std::string number_list(const std::vector<std::uint32_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

// The texts of the files that the scope's functions are in, as far as the limit goes; of each function there its lines.
void write_sources(Json& json, const Scope& scope) {
  const FunctionList& functions = scope.index->functions();
  std::vector<bool> called(functions.functions().size());
  for (const Scope::Part& part : scope.parts) {
    each_row(part.rows, [&](std::uint32_t row) { called[part.function(row)] = true; });
  }
  std::map<std::string, std::vector<std::size_t>> wanted;
  for (std::size_t i = 0; i < called.size(); ++i) {
    const std::int64_t file = functions.functions()[i].file;
    if (called[i] && file >= 0) wanted[functions.files()[static_cast<std::size_t>(file)]].push_back(i);
  }
  std::uint64_t size = 0;
  std::uint64_t left_out = 0;
  json.key("sources").open('[');
  for (const reader::SourceFile& source : scope.index->trace().sources()) {
    const auto of = wanted.find(source.path);
    if (of == wanted.end()) continue;
    if (size + source.text.size() > kMaxHtmlSource) {
      ++left_out;
      continue;
    }
    size += source.text.size();
    json.open('{').field("path", source.path).field("text", source.text).key("functions").open('{');
    for (const std::size_t i : of->second) {
      const std::uint32_t line = functions.functions()[i].line;
      json.key(std::to_string(i)).open('[').value(line).value(function_end_line(source.text, line)).close(']');
    }
    json.close('}').close('}');
  }
  json.close(']').field("sources_left_out", left_out);
}

// In a script element, text that looks like a tag could end it.
void append_in_script(std::string_view json, Output& output) {
  while (!json.empty()) {
    const std::size_t at = json.find('<');
    output.append(json.substr(0, at));
    if (at == std::string_view::npos) return;
    output.append("\\u003c");
    json.remove_prefix(at + 1);
  }
}

// Where the data goes.
Result<std::size_t> place_in(std::string_view page) {
  const std::size_t place = page.find(kPlace);
  if (place != std::string_view::npos) return place;
  return Error{
      "this karst was built without what a page in one file needs (script/setup demo leaves it out): run script/setup"};
}

// The trace of the scope: the file as it is when that is `all` of it, and it has its names.
Result<std::string> part_of(const Scope& scope, bool all) {
  const reader::Trace& trace = scope.index->trace();
  const auto text = [](std::span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  if (all && trace.resolved()) {
    std::string bytes = text(trace.bytes());
    if (const auto status = trace.unchanged(); !status) return status.error();
    return bytes;
  }
  const auto bytes = cut_trace(scope);
  if (!bytes) return bytes.error();
  return text(*bytes);
}

// What an aggregated page holds: the answers about all of its range, and one picture.
Status write_answers(Json& json, const Scope& scope, const HtmlOptions& options, double begin, double end) {
  // Asked as a page would ask: what is exported is what the server shows.
  const TraceIndex& index = *scope.index;
  Parameters range = {{"threads", number_list(options.threads)}};
  if (options.begin) range["begin"] = fmt::format("{:.3f}", begin);
  if (options.end && end < index.since_origin(index.last_ticks())) range["end"] = fmt::format("{:.3f}", end);
  Api api({&index}, options.version);
  json.key("range").open('{').field("begin", begin).field("end", end).close('}');
  json.key("trace").raw(trace_json(index, options.version, 1, {.keep = true}));
  Parameters inverted = range;
  inverted.emplace("inverted", "1");
  json.key("functions").raw(api.answer("functions", range).body);
  json.key("flame").raw(api.answer("flame", range).body);
  json.key("flame_inverted").raw(api.answer("flame", inverted).body);
  std::vector<std::uint32_t> all(index.threads().size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  json.field("minimap", base64(encode_minimap(index, all, 1024)));
  write_sources(json, scope);
  std::vector<TrackLanes> wanted;
  for (const Track& track : tracks_of(index)) {
    const bool chosen =
        std::find(options.threads.begin(), options.threads.end(), track.facts.owner) != options.threads.end();
    if (chosen || !track.kind->of_threads()) wanted.push_back({track.id});
  }
  for (std::uint32_t width = 4096;; width /= 2) {
    const auto tiles = encode_tiles(index, wanted, begin, std::max(end, begin + 1), width);
    TileHeader header{};
    if (tiles) std::memcpy(&header, tiles->data(), sizeof header);
    if (!tiles && width == 1) return tiles.error();
    if (!tiles || (header.slices > kMaxHtmlSlices && width != 1)) continue;
    json.field("tiles", base64(gzip(*tiles))).field("tiles_width", width);
    return Unit{};
  }
}

}  // namespace

Status export_viewer(std::string_view page, Output& output) {
  const auto place = place_in(page);
  if (!place) return place.error();
  output.append(page);
  return Unit{};
}

Status export_html(const TraceIndex& index, std::string_view page, const HtmlOptions& options, Output& output) {
  const auto place = place_in(page);
  if (!place) return place.error();
  const double span = index.since_origin(index.last_ticks());
  const double begin = std::max(options.begin.value_or(0), 0.0);
  const double end = std::min(options.end.value_or(span), span);
  if (options.begin || options.end) {
    if (!(begin < end)) {
      return Error{fmt::format("the range is empty: {} is {} ns long, and it goes from {} to {} ns",
                               index.trace().name(), span, begin, end)};
    }
  }

  Scope scope(index);
  std::uint64_t calls = 0;
  std::uint64_t states = 0;
  // Else a part of it, which the page says.
  const bool whole = !options.begin && !(options.end && end < span) && options.threads.size() == index.threads().size();
  Picture picture{index.to_ticks(begin), index.to_ticks(end), index.origin(), 1};
  TickRange ticks;
  if (options.begin) ticks.begin = picture.first_tick();
  if (options.end && end < span) ticks.end = picture.end_tick();
  for (const std::uint32_t number : options.threads) {
    const ThreadIndex& thread = index.threads()[number];
    scope.add(number, rows_in(thread.calls, ticks));
    calls += scope.parts.back().rows.outer.size() + (scope.parts.back().rows.last - scope.parts.back().rows.first);
    const auto [first, last] = thread.strip().rows_in(ticks.begin, ticks.end);
    states += last - first;  // they take as much room as calls
  }
  if (!options.aggregated && calls + states > kMaxHtmlCalls) {
    return Error{
        fmt::format("{}: these are {} calls{}, and a page holds at most {} one by one. Choose a shorter --range or "
                    "fewer threads, or take --aggregated: sums, flame graphs and one picture of all of it",
                    index.trace().name(), calls,
                    states != 0 ? fmt::format(" and {} states of threads", states) : std::string(), kMaxHtmlCalls)};
  }

  Json json;
  json.open('{').field("version", kProtocolVersion).field("kind", options.aggregated ? "aggregated" : "trace");
  std::string trace;  // packed
  if (options.aggregated) {
    if (auto status = write_answers(json, scope, options, begin, end); !status) return status;
  } else {
    auto bytes = part_of(scope, whole);
    if (!bytes) return bytes.error();
    trace = base64(gzip(*bytes));
    json.field("name", std::filesystem::path(index.trace().name()).filename().string());
    if (!whole) {
      json.key("part").open('{').field("origin", std::to_string(index.origin()));
      if (options.begin) json.field("begin", std::to_string(ticks.begin));
      if (options.end && end < span) json.field("end", std::to_string(ticks.end));
      json.close('}');
    }
  }
  json.close('}');

  output.append(page.substr(0, *place));
  output.append("<script type=\"application/json\" id=\"karst-embedded\">");
  append_in_script(json.take(), output);
  output.append("</script>");
  if (!trace.empty()) {
    output.append("<script type=\"text/plain\" id=\"karst-trace\">");
    output.append(trace);
    output.append("</script>");
  }
  output.append(page.substr(*place + kPlace.size()));
  return Unit{};
}

}  // namespace karst::engine
