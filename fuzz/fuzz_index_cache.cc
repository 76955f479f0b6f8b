// Indexes of the cache. The input is an index of a small trace, of any bytes; its checksums are set right, as they
// would stop nearly everything at the door. What is taken from it is used: each question about it has an answer.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/api/api.h"
#include "engine/index/index_cache.h"
#include "format/checksum.h"
#include "fuzz/require.h"
#include "test/engine/random_trace.h"

namespace {

using namespace karst;
using fuzz::require;
namespace fs = std::filesystem;

// Of engine/index/index_cache.cc's Header.
constexpr std::size_t kHeader = 88;
constexpr std::size_t kMagicAndContents = 32;
constexpr std::size_t kSize = 32;
constexpr std::size_t kMetaOffset = 40;
constexpr std::size_t kMetaCount = 48;
constexpr std::size_t kMetaCrc = 80;
constexpr std::size_t kCrc = 84;

template <typename T>
T get(const std::vector<char>& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
template <typename T>
void set(std::vector<char>& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Three numbers of which the first two lie in the file are taken for a part with its sum.
void fix_parts(std::vector<char>& bytes, std::uint64_t meta, std::uint64_t count) {
  for (std::uint64_t i = 0; i + 2 < count; ++i) {
    const auto offset = get<std::uint64_t>(bytes, meta + i * 8);
    const auto size = get<std::uint64_t>(bytes, meta + i * 8 + 8);
    if (offset < kHeader || offset % 64 != 0 || offset > meta || size > meta - offset) continue;
    set<std::uint64_t>(bytes, meta + i * 8 + 16, format::crc32c(bytes.data() + offset, size));
    i += 2;
  }
}

void fix(std::vector<char>& bytes, const std::vector<char>& sound) {
  if (bytes.size() < kHeader) return;
  std::memcpy(bytes.data(), sound.data(), kMagicAndContents);
  set<std::uint64_t>(bytes, kSize, bytes.size());
  const auto meta = get<std::uint64_t>(bytes, kMetaOffset);
  const auto count = get<std::uint64_t>(bytes, kMetaCount);
  if (meta <= bytes.size() && count <= (bytes.size() - meta) / 8) {
    fix_parts(bytes, meta, count);
    set<std::uint32_t>(bytes, kMetaCrc, format::crc32c(bytes.data() + meta, count * 8));
  }
  set<std::uint32_t>(bytes, kCrc, format::crc32c(bytes.data(), kCrc));
}

struct World {
  fs::path directory;
  fs::path trace;
  fs::path index;
  std::vector<char> sound;

  World() {
    std::string made = (fs::temp_directory_path() / "karst-fuzz-XXXXXX").string();
    require(::mkdtemp(made.data()) != nullptr, "there is a directory for temporary files");
    directory = made;
    trace = directory / "app.karst";
    test::SampleTrace sample;
    test::fill_random(sample, {.threads = 2, .calls = 40});
    {
      auto writer = writing::TraceWriter::create(trace);
      require(writer.ok(), "a trace can be written");
      sample.write(*writer);
    }
    engine::IndexProgress progress;
    const std::atomic<bool> stop = false;
    const engine::IndexCache kept = cache();
    const auto built = engine::TraceIndex::build(trace, progress, &kept);
    require(built.ok() && kept.save(**built, stop), "an index can be kept");
    index = kept.file_of(kept.look_at(trace));
    std::ifstream in(index, std::ios::binary);
    sound.assign(std::istreambuf_iterator<char>(in), {});
    // By hand: a seed for fuzz/seeds/index_cache.
    if (const char* to = std::getenv("KARST_FUZZ_SEED"); to != nullptr)
      std::ofstream(to, std::ios::binary).write(sound.data(), static_cast<std::streamsize>(sound.size()));
  }
  ~World() {
    std::error_code error;
    fs::remove_all(directory, error);
  }
  engine::IndexCache cache() const { return engine::IndexCache(directory / "cache", std::uint64_t{1} << 30U, 0); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const World world;
  if (size > std::size_t{1} << 16U) return 0;
  std::vector<char> bytes(data, data + size);
  if (size % 16 != 15) fix(bytes, world.sound);
  {
    std::ofstream out(world.index, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  ::chmod(world.index.c_str(), 0600);
  engine::IndexProgress progress;
  const engine::IndexCache cache = world.cache();
  const auto index = engine::TraceIndex::build(world.trace, progress, &cache);
  require(index.ok(), "a trace can be shown whatever the cache holds");
  engine::Api api({index->get()}, "fuzz");
  for (const auto& [path, parameters] : std::initializer_list<std::pair<const char*, engine::Parameters>>{
           {"trace", {}},
           {"tiles", {{"width", "300"}}},
           {"tiles", {{"width", "10"}, {"function", "0"}}},
           {"minimap", {}},
           {"functions", {}},
           {"flame", {}},
           {"histogram", {{"function", "0"}}},
           {"occurrences", {{"function", "0"}}},
           {"call", {{"thread", "1"}, {"index", "7"}}},
           {"align", {{"thread", "0"}, {"index", "0"}, {"b.thread", "1"}, {"b.index", "0"}}},
           {"cut", {{"begin", "0"}, {"end", "1000"}}}}) {
    require(api.answer(path, parameters).status != 507, "a small trace has small answers");
  }
  return 0;
}
