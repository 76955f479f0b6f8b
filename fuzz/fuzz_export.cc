// Exporters from end to end: a .karst file of any bytes becomes JSON, protobuf and a page, each read by another
// decoder.
#include <simdjson.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <span>
#include <string>
#include <utility>

#include "engine/cut/exported_page.h"
#include "engine/index/index.h"
#include "export/export.h"
#include "fuzz/require.h"
#include "reader/trace.h"

namespace {

using namespace karst;
using fuzz::require;

std::string exported(const reader::Trace& trace, exporting::Exporter exporter) {
  exporting::Options options;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) options.threads.push_back(&thread);
  std::string text;
  Output output = Output::to_string(text);
  exporter(trace, options, output);
  require(output.finish().ok(), "writing to memory succeeds");
  return text;
}

bool is_json(const std::string& text) {
  simdjson::dom::parser parser;
  return parser.parse(simdjson::padded_string(text)).error() == simdjson::SUCCESS;
}

/// RFC 1952; nothing where it is not whole.
std::optional<std::string> unpacked(std::string bytes) {
  z_stream stream{};
  constexpr int kWindow = 15, kGzip = 16;
  if (inflateInit2(&stream, kWindow + kGzip) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string all, buffer(1 << 16, '\0');
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    all.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END ? std::optional(all) : std::nullopt;
}

/// A profile whose fields are whole, in gzip.
bool is_pprof(const std::string& bytes) {
  const auto profile = unpacked(bytes);
  if (!profile) return false;
  try {
    protozero::pbf_reader fields(*profile);
    while (fields.next()) fields.skip();
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

/// A sequence of packets whose fields are whole.
bool is_perfetto(const std::string& bytes) {
  try {
    protozero::pbf_reader trace(bytes);
    while (trace.next(1)) {
      protozero::pbf_reader packet = trace.get_message();
      while (packet.next()) packet.skip();
    }
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

void check_page(reader::Trace trace) {
  engine::IndexProgress progress;
  const auto index = engine::TraceIndex::build(std::move(trace), progress);
  if (!index) return;
  engine::HtmlOptions options;
  options.version = "fuzz";
  for (std::uint32_t i = 0; i < (*index)->threads().size(); ++i) options.threads.push_back(i);
  for (const bool aggregated : {false, true}) {
    options.aggregated = aggregated;
    std::string page;
    Output output = Output::to_string(page);
    const Status written =
        export_html(**index, "<html><!--karst-embedded--><script>page()</script></html>", options, output);
    require(output.finish().ok(), "writing to memory succeeds");
    if (!written) continue;
    constexpr std::string_view kOpen = "<script type=\"application/json\" id=\"karst-embedded\">";
    const std::size_t begin = page.find(kOpen);
    require(begin != std::string::npos, "a page has its data");
    const std::size_t end = page.find("</script>", begin);
    require(page.find("<script>page()</script>", end) != std::string::npos, "data ends where it says");
    require(is_json(page.substr(begin + kOpen.size(), end - begin - kOpen.size())), "a page's data is JSON");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto trace = reader::Trace::open_memory(std::as_bytes(std::span(data, size)), "fuzz");
  if (!trace) return 0;
  require(is_json(exported(*trace, exporting::export_chrome)), "Chrome's format is JSON");
  require(is_perfetto(exported(*trace, exporting::export_perfetto)), "Perfetto's format is protobuf");
  require(is_json(exported(*trace, exporting::export_firefox)), "the Firefox Profiler's format is JSON");
  require(is_pprof(exported(*trace, exporting::export_pprof)), "pprof's format is protobuf in gzip");
  check_page(std::move(*trace));
  return 0;
}
