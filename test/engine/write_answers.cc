// karst-answers DIR: writes random traces to DIR, and what the server's Api answers about each: questions.json, a list
// of {"file", "part", "path", "parameters", "status", "answer"}, the answer in hexadecimal. A test of the page's engine
// compares (page/test/unit/engine.test.ts).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/api/api.h"
#include "engine/cut/cut.h"
#include "engine/tiles/tracks.h"
#include "test/engine/random_calls.h"
#include "test/engine/random_locks.h"
#include "test/engine/random_notes.h"

namespace karst {
namespace {

std::string hexadecimal(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4U];
    text += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

struct Asked {
  const char* path;
  engine::Parameters parameters;
};

// Every kind of question, at places that the trace has and at some that it has not.
std::vector<Asked> questions(const engine::TraceIndex& index, std::mt19937& random) {
  const auto below = [&](std::uint64_t n) { return std::to_string(n == 0 ? 0 : random() % n); };
  const double span = index.since_origin(index.last_ticks());
  const auto time = [&] { return std::to_string(span * static_cast<double>(random() % 1000) / 1000); };
  const std::size_t functions = index.functions().functions().size();
  std::vector<Asked> all = {{"trace", {}},
                            {"functions", {}},
                            {"flame", {}},
                            {"flame", {{"inverted", "1"}}},
                            {"minimap", {{"width", "300"}}},
                            {"minimap", {{"width", "100"}, {"of", "blocked"}}},
                            {"flame", {{"by", "cpu"}}},
                            {"outliers", {}},
                            {"outliers", {{"each", "1"}, {"limit", "7"}}},
                            {"threads", {}},
                            {"explain", {}},
                            {"requests", {}},
                            {"notes", {}},
                            {"notes", {{"order", "newest"}, {"limit", "20"}, {"kind", "message,value"}}},
                            {"notes", {{"q", "LINE 1"}}},
                            {"notes", {{"q", "1"}, {"kind", "call,message"}, {"limit", "9"}}},
                            {"notes", {{"q", "x"}, {"limit", "many"}}},
                            {"plots", {}},
                            {"plots", {{"width", "77"}, {"plot", "0"}}},
                            {"frames", {}},
                            {"frame", {{"set", "0"}, {"target", "100"}, {"number", "3"}}},
                            {"locks", {}},
                            {"lock", {{"lock", "0"}, {"holder", "3"}}},
                            // Of a lock, where there are any: the first behind those that are listed.
                            {"tiles",
                             {{"begin", "0"},
                              {"end", "100000"},
                              {"width", "100"},
                              {"tracks", std::to_string(engine::tracks_of(index).size())}}},
                            {"search", {{"q", "f[1-3]$"}}},
                            {"search", {{"q", "("}}},
                            {"nothing", {}},
                            {"findings", {{"b.trace", "0"}}},
                            {"findings", {{"b.trace", "1"}}},
                            {"cut", {}}};
  for (int i = 0; i < 12; ++i) {
    const engine::Parameters range = {{"begin", time()}, {"end", time()}};
    const engine::Parameters function = {{"function", below(functions + 1)}};
    engine::Parameters both = range;
    both.insert(function.begin(), function.end());
    const std::size_t number = random() % (index.threads().size() + (i == 0 ? 1 : 0));
    const std::size_t calls = number < index.threads().size() ? index.threads()[number].calls.size() : 5;
    const engine::Parameters call = {{"thread", std::to_string(number)}, {"index", below(calls + (i == 1 ? 2 : 0))}};
    engine::Parameters next = function;
    next.insert(call.begin(), call.end());
    next["order"] = random() % 2 == 0 ? "time" : "duration";
    next["limit"] = "5";
    engine::Parameters tiles = range;
    tiles["width"] = below(400);
    engine::Parameters align = call;
    align["b.thread"] = "0";
    all.push_back({"functions", range});
    all.push_back({"functions", call});
    all.push_back({"histogram", both});
    all.push_back({"histogram", function});
    all.push_back({"flame", both});
    all.push_back({"call", call});
    all.push_back({"outliers", range});
    all.push_back({"explain", call});
    all.push_back({"threads", range});
    all.push_back({"notes", range});
    all.push_back({"notes", call});
    engine::Parameters marks = range;
    marks["width"] = below(400);
    all.push_back({"notes", std::move(marks)});
    engine::Parameters some = function;
    some["order"] = "duration";
    some["least"] = time();
    some["most"] = time();
    some["limit"] = "9";
    all.push_back({"occurrences", std::move(some)});
    all.push_back({"occurrences", next});
    all.push_back({"tiles", tiles});
    tiles["function"] = function.at("function");
    all.push_back({"tiles", std::move(tiles)});
    all.push_back({"source", function});
    all.push_back({"state", call});
    all.push_back({"values", call});
    all.push_back({"lock", call});
    all.push_back({"memory", call});
    all.push_back({"align", std::move(align)});
  }
  return all;
}

class Writer {
 public:
  explicit Writer(std::filesystem::path directory) : directory_(std::move(directory)) { json_.open('['); }

  // About the trace of `bytes`; it is a `part` of another, if that is there.
  void ask(std::span<const std::byte> bytes, std::optional<engine::TraceIndex::Part> part, std::uint32_t seed) {
    const std::string file = std::to_string(files_++) + ".karst";
    std::ofstream(directory_ / file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    auto trace = reader::Trace::open_memory(bytes, file);
    engine::IndexProgress progress;
    auto index = engine::TraceIndex::build(std::move(*trace), progress);
    if (part) (*index)->set_part(*part);
    engine::Api api({index->get()}, KARST_VERSION);
    std::mt19937 random(seed);
    for (const Asked& asked : questions(**index, random)) {
      const engine::Reply reply = api.answer(asked.path, asked.parameters);
      json_.open('{').field("file", file).field("path", asked.path).key("parameters").open('{');
      for (const auto& [name, value] : asked.parameters) json_.field(name, value);
      json_.close('}').key("part").open('{');
      if (part) {
        json_.field("origin", std::to_string(part->origin)).field("begin", std::to_string(part->range.begin));
        json_.field("end", std::to_string(part->range.end));
      }
      json_.close('}').field("status", reply.status).field("answer", hexadecimal(reply.body)).close('}');
    }
  }
  void finish() { std::ofstream(directory_ / "questions.json") << json_.close(']').take(); }

 private:
  std::filesystem::path directory_;
  Json json_;
  int files_ = 0;
};

}  // namespace
}  // namespace karst

int main(int argc, char** argv) {
  using namespace karst;
  if (argc != 2) {
    std::fputs("usage: karst-answers DIR\n", stderr);
    return 2;
  }
  Writer writer(argv[1]);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    auto made = test::random_calls(seed);
    if (seed % 2 == 0) {
      made->sample.costs(9 * format::kCallCostUnit, 5 * format::kCallCostUnit);
      made->index = test::index_of(made->sample);
    }
    writer.ask(made->index->trace().bytes(), std::nullopt, seed);
    std::mt19937 random(seed);
    const engine::TraceIndex& index = *made->index;
    const std::uint64_t span = index.last_ticks() - index.origin();
    const std::uint64_t begin = index.origin() + random() % span;
    const engine::TickRange range{begin, begin + 1 + random() % span};
    const auto cut = engine::cut_trace(test::scope_of(index, range));
    if (cut) writer.ask(*cut, engine::TraceIndex::Part{index.origin(), range}, seed);
  }
  test::SampleTrace noted = test::random_notes(1, 60);
  writer.ask(noted.open().bytes(), std::nullopt, 1);
  test::RandomLocks locked(1, true);
  writer.ask(locked.sample.open().bytes(), std::nullopt, 1);
  writer.finish();
}
