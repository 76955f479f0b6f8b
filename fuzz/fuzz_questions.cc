// Questions to the viewer's api about a small trace: whatever is asked has an answer, of a size that the trace bounds.
// The input is what follows `api/` in an address.
#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "engine/api/api.h"
#include "engine/cut/cut.h"
#include "engine/server/http_request.h"
#include "fuzz/require.h"
#include "test/engine/random_trace.h"

namespace {

using namespace karst;
using fuzz::require;

test::Indexed made(std::uint32_t seed) {
  test::Indexed indexed;
  test::fill_random(indexed.sample, {.seed = seed, .threads = 2, .calls = 60, .open_ends = seed == 1, .processes = 2});
  reader::StateLog log;
  log.source = {format::StateBackend::kFtrace,
                format::kStatesWakes | format::kStatesOthers,
                50,
                2,
                1000,
                90000,
                3,
                4,
                5,
                6,
                "none"};
  log.tasks = {{100, 100, true, "app"}, {101, 100, true, "worker"}, {99, 98, false, "other"}};
  std::uint64_t now = 1000;
  for (std::uint32_t i = 0; i < 60; ++i, now += 37 * seed) {
    const auto cpu = static_cast<std::uint16_t>(i % 2);
    const std::uint32_t from = i % 3 == 0 ? 99 : 100 + i % 2;
    const std::uint32_t to = i % 3 == 2 ? 0 : 100 + (i + 1) % 2;
    if (i % 5 == 4) log.records.push_back({now, from, to, 0, cpu, format::kStateWaking, 0});
    log.records.push_back(
        {now + 5, from, to, i % 2 == 0 ? 'S' : 'R' | format::kLeaveRunnable, cpu, format::kStateLeaveCpu, 0});
  }
  indexed.sample.states(std::move(log));
  indexed.index = test::index_of(indexed.sample);
  return indexed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const test::Indexed one = made(1);
  static const test::Indexed other = made(2);
  static engine::Api api({one.index.get(), other.index.get()}, "fuzz");
  api.set_server({.cut = engine::cut_trace});
  const auto parsed = engine::parse_request(
      std::string("GET /").append(reinterpret_cast<const char*>(data), size).append(" HTTP/1.1\r\n\r\n"));
  const auto* request = std::get_if<engine::HttpRequest>(&parsed);
  if (request == nullptr) return 0;
  const engine::Reply reply = api.answer(std::string_view(request->path).substr(1), request->parameters);
  require(
      reply.status == 200 || reply.status == 400 || reply.status == 404 || reply.status == 413 || reply.status == 507,
      "an answer, or a word why there is none");
  require(reply.status != 507, "a small trace has small answers");
  require(reply.body.size() < std::size_t{4} << 20U, "and short ones");
  if (reply.type.starts_with("application/json")) {
    simdjson::dom::parser parser;
    require(parser.parse(simdjson::padded_string(reply.body)).error() == simdjson::SUCCESS, "it is JSON");
  }
  return 0;
}
