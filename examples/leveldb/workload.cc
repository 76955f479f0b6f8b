// A workload on LevelDB for tracing: writer threads put batches until background compaction cannot keep up and
// writes stall. It keeps its own stopwatch around each Write, so what it prints can be compared with the trace.
//
// Two modes:
//   default   --threads writers, LevelDB's own background thread compacts.
//   --single  everything on the main thread: work that LevelDB schedules for its background thread is kept and run
//             between writes. No thread, no waiting, no clock decides anything, so two runs make exactly the same
//             calls; tests compare the counts with those of gcov and callgrind.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/write_batch.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  int threads = 4;
  long batches = 10000;           // in all, over all threads
  int batch_size = 32;            // puts a batch
  long stalls = 0;                // end after so many stalled writes; 0: only --batches ends the run
  long stall_us = 1000;           // a write this slow counts as stalled
  long write_buffer = 256 << 10;  // bytes
  bool single = false;
  std::string db;  // empty: a temporary directory
};

constexpr const char kUsage[] =
    "usage: leveldb-workload [--threads N] [--batches N] [--batch-size N] [--stalls N] [--stall-us N]\n"
    "                        [--write-buffer BYTES] [--db DIR] [--single]\n"
    "  --batches N   end after N batches in all threads together (default 10000)\n"
    "  --stalls N    end as soon as N writes took --stall-us (default 1000) or longer\n"
    "  --single      one thread, same calls in every run: scheduled work runs between writes\n";

/// Keeps what is scheduled for the background until run_pending(). Used by one thread.
class SingleThreadEnv : public leveldb::EnvWrapper {
 public:
  explicit SingleThreadEnv(leveldb::Env* target) : leveldb::EnvWrapper(target) {}

  void Schedule(void (*function)(void*), void* argument) override { pending_.push_back({function, argument}); }

  void run_pending() {
    while (!pending_.empty()) {
      const Work work = pending_.front();
      pending_.pop_front();
      work.function(work.argument);
    }
  }

 private:
  struct Work {
    void (*function)(void*);
    void* argument;
  };
  std::deque<Work> pending_;
};

struct WriterResult {
  long writes = 0;
  long stalled = 0;
  double slowest_ms = 0;
  double total_ms = 0;
  std::string error;
};

struct Shared {
  std::atomic<long> batches_left{0};
  std::atomic<long> stalls{0};
};

/// CPU time of the whole process.
double cpu_time_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

std::uint64_t next_random(std::uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return state >> 33;
}

void fill_batch(leveldb::WriteBatch& batch, std::uint64_t& random, int size) {
  char key[24];
  char value[128];
  for (int i = 0; i < size; ++i) {
    const int key_size =
        std::snprintf(key, sizeof key, "%012llu", static_cast<unsigned long long>(next_random(random)));
    std::memset(value, 'x', sizeof value);  // half of it compresses
    for (std::size_t at = 0; at < sizeof value / 2; ++at) value[at] = static_cast<char>(next_random(random));
    batch.Put(leveldb::Slice(key, static_cast<std::size_t>(key_size)), leveldb::Slice(value, sizeof value));
  }
}

void write_batches(leveldb::DB& db, const Settings& settings, int thread, Shared& shared, SingleThreadEnv* single,
                   WriterResult& result) {
  std::uint64_t random = 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(thread + 1);
  const leveldb::WriteOptions options;
  while (shared.batches_left.fetch_sub(1) > 0) {
    leveldb::WriteBatch batch;
    fill_batch(batch, random, settings.batch_size);
    const Clock::time_point begin = Clock::now();
    const leveldb::Status status = db.Write(options, &batch);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (!status.ok()) {
      result.error = status.ToString();
      break;
    }
    ++result.writes;
    result.total_ms += ms;
    result.slowest_ms = std::max(result.slowest_ms, ms);
    if (single != nullptr) {
      single->run_pending();
      continue;  // a stopwatch must not decide how many batches are written
    }
    if (ms * 1000 >= static_cast<double>(settings.stall_us)) {
      ++result.stalled;
      const long stalls = shared.stalls.fetch_add(1) + 1;
      if (settings.stalls > 0 && stalls >= settings.stalls) shared.batches_left.store(0);
    }
  }
}

bool parse_number(const char* text, long low, long high, long& value) {
  char* end = nullptr;
  value = std::strtol(text, &end, 10);
  return end != text && *end == '\0' && value >= low && value <= high;
}

bool parse(int argc, char** argv, Settings& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    long value = 0;
    if (option == "--single") {
      settings.single = true;
      continue;
    }
    if (i + 1 >= argc) return false;
    const char* text = argv[++i];
    if (option == "--db") {
      settings.db = text;
    } else if (!parse_number(text, 0, 1L << 40, value)) {
      return false;
    } else if (option == "--threads" && value >= 1 && value <= 1024) {
      settings.threads = static_cast<int>(value);
    } else if (option == "--batches") {
      settings.batches = value;
    } else if (option == "--batch-size" && value >= 1 && value <= 1 << 20) {
      settings.batch_size = static_cast<int>(value);
    } else if (option == "--stalls") {
      settings.stalls = value;
    } else if (option == "--stall-us") {
      settings.stall_us = value;
    } else if (option == "--write-buffer") {
      settings.write_buffer = value;
    } else {
      return false;
    }
  }
  return true;
}

int run(const Settings& settings, const std::string& path) {
  std::unique_ptr<SingleThreadEnv> single;
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = static_cast<std::size_t>(settings.write_buffer);
  if (settings.single) {
    single = std::make_unique<SingleThreadEnv>(leveldb::Env::Default());
    options.env = single.get();
  }

  leveldb::DB* opened = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options, path, &opened);
  if (!status.ok()) {
    std::fprintf(stderr, "leveldb-workload: cannot open %s: %s\n", path.c_str(), status.ToString().c_str());
    return 1;
  }
  std::unique_ptr<leveldb::DB> db(opened);
  if (single) single->run_pending();

  Shared shared;
  shared.batches_left = settings.batches;
  const int threads = settings.single ? 1 : settings.threads;
  std::vector<WriterResult> results(static_cast<std::size_t>(threads));
  const Clock::time_point begin = Clock::now();
  const double cpu_begin = cpu_time_ms();
  if (settings.single) {
    write_batches(*db, settings, 0, shared, single.get(), results[0]);
  } else {
    leveldb::Env::Default()->Schedule([](void*) { pthread_setname_np(pthread_self(), "compaction"); }, nullptr);
    std::vector<std::thread> writers;
    writers.reserve(results.size());
    for (int t = 0; t < threads; ++t) {
      writers.emplace_back([&, t] {
        pthread_setname_np(pthread_self(), ("writer " + std::to_string(t)).c_str());
        write_batches(*db, settings, t, shared, nullptr, results[static_cast<std::size_t>(t)]);
      });
    }
    for (std::thread& writer : writers) writer.join();
  }
  const double wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  const double cpu_ms = cpu_time_ms() - cpu_begin;
  db.reset();  // waits for the compaction that is under way
  leveldb::DestroyDB(path, options);

  WriterResult all;
  for (const WriterResult& one : results) {
    all.writes += one.writes;
    all.stalled += one.stalled;
    all.total_ms += one.total_ms;
    all.slowest_ms = std::max(all.slowest_ms, one.slowest_ms);
    if (!one.error.empty()) all.error = one.error;
  }
  if (!all.error.empty()) {
    std::fprintf(stderr, "leveldb-workload: write failed: %s\n", all.error.c_str());
    return 1;
  }
  std::printf(
      "wall %.1f ms, cpu %.1f ms, %d threads, %ld writes of %d puts, mean %.1f us, slowest %.3f ms, stalled (over %ld "
      "us) %ld\n",
      wall_ms, cpu_ms, threads, all.writes, settings.batch_size,
      all.writes > 0 ? all.total_ms * 1000 / static_cast<double>(all.writes) : 0.0, all.slowest_ms, settings.stall_us,
      all.stalled);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!parse(argc, argv, settings)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (!settings.db.empty()) return run(settings, settings.db);

  const char* base = std::getenv("TMPDIR");
  std::string directory = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/leveldb-workload-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) {
    std::perror("leveldb-workload: cannot make a temporary directory");
    return 1;
  }
  const int status = run(settings, directory);
  rmdir(directory.c_str());
  return status;
}
