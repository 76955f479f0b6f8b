// A process that says it is traced: its arena (format/arena.h) is of its own making, and hostile in one way, the
// argument. It prints "ready" and waits for the end of its standard input.
#include <fcntl.h>
#include <linux/falloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "arch/cpu.h"
#include "format/arena.h"
#include "format/control.h"
#include "format/watch.h"

namespace {

using namespace karst::format;

constexpr std::uint64_t kHuge = 2 << 20;  // the size of a huge page

std::uint64_t raw_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

/// An arena laid out as libkarst's, with nothing in it but one module and its header.
class Arena {
 public:
  struct Options {
    std::uint32_t blocks = 4096;
    unsigned flags = MFD_ALLOW_SEALING;
    int seals = F_SEAL_SHRINK | F_SEAL_GROW;
    bool maps = true;
  };
  explicit Arena(const Options& options) {
    const auto place = [this](std::uint64_t size) {
      const std::uint64_t offset = end_;
      end_ = (end_ + size + kBlockSize - 1) / kBlockSize * kBlockSize;
      return offset;
    };
    h_.magic = kArenaMagic;
    h_.version = kArenaVersion;
    h_.state = static_cast<std::uint32_t>(ArenaState::kReady);
    h_.module_capacity = kArenaModules;
    h_.function_capacity = kMaxFunctionId + 1;
    h_.thread_capacity = kArenaThreads;
    h_.text_capacity = kArenaTextSize;
    h_.block_capacity = h_.blocks_reserved = options.blocks;
    h_.control_offset = place(sizeof(ArenaControl));
    switches_offset = place(sizeof(ArenaSwitch) * std::uint64_t{kArenaSwitches});
    h_.threads_offset = place(sizeof(ArenaThread) * std::uint64_t{kArenaThreads});
    h_.blocks_offset = place(std::uint64_t{options.blocks} * kBlockSize);
    watching_.slots_offset = place(sizeof(std::uint64_t) * std::uint64_t{kWatchSlots});
    watching_.moments_offset = place(sizeof(ArenaMoment) * std::uint64_t{kWatchSlots});
    watching_.candidates_offset = place(sizeof(ArenaCandidate) * std::uint64_t{kWatchCandidates});
    watching_.blocks_offset = place(kBlockSize);
    h_.modules_offset = place(sizeof(ArenaModule) * kArenaModules);
    h_.functions_offset = place(sizeof(ArenaFunction) * std::uint64_t{h_.function_capacity});
    h_.watching_offset = place(sizeof(ArenaWatching));
    watching_.rules_offset = place(sizeof(ArenaWatchRule) * std::uint64_t{kWatchRules});
    watching_.watches_offset = place(sizeof(ArenaWatch) * std::uint64_t{kWatches});
    h_.text_offset = place(kArenaTextSize);
    h_.text_used = kArenaTextSize;
    end_ = (end_ + kHuge - 1) / kHuge * kHuge;
    h_.size = end_;
    h_.pid = static_cast<std::uint32_t>(getpid());
    h_.start_ticks = karst::arch::time_stamp();
    h_.start_monotonic_raw_ns = raw_ns();
    h_.start_realtime_ns = static_cast<std::uint64_t>(time(nullptr)) * 1'000'000'000U;
    h_.module_count = 1;
    fd = memfd_create("karst-arena", options.flags);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(end_)) != 0) fail("memfd");
    if (fcntl(fd, F_ADD_SEALS, options.seals) != 0) fail("seals");
    if (!options.maps) return;
    base_ = static_cast<char*>(mmap(nullptr, end_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0));
    if (base_ == MAP_FAILED) fail("mmap");
    put();
    std::memcpy(at<char>(h_.watching_offset), &watching_, sizeof watching_);
    ArenaControl& c = *at<ArenaControl>(h_.control_offset);
    c.enabled = 1;
    c.cost_ppm = ~0U;
    c.switches_offset = switches_offset;
    c.switch_capacity = kArenaSwitches;
    ArenaModule& m = *at<ArenaModule>(h_.modules_offset);
    m.path_offset = 1;
    const std::string path = "/bin/true";
    std::memcpy(at<char>(h_.text_offset + 1), path.data(), path.size());
    m.path_size = static_cast<std::uint32_t>(path.size());
  }

  template <typename T>
  T* at(std::uint64_t offset) {
    return reinterpret_cast<T*>(base_ + offset);
  }
  ArenaHeader& header() { return h_; }
  void put() { std::memcpy(base_, &h_, sizeof h_); }
  std::uint64_t size() const { return end_; }
  ArenaThread* threads() { return at<ArenaThread>(h_.threads_offset); }
  ArenaFunction* functions() { return at<ArenaFunction>(h_.functions_offset); }
  ArenaWatching& watching() { return *at<ArenaWatching>(h_.watching_offset); }
  void add_threads(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      threads()[i].tid = h_.pid + i;
      threads()[i].state = static_cast<std::uint32_t>(ThreadLife::kLive);
    }
    h_.thread_count = count;
    put();
  }
  void add_functions(std::uint32_t count) {
    for (std::uint32_t i = 1; i <= count; ++i) functions()[i] = {0x1000 + i * std::uint64_t{16}, 0, kArenaFunctionOn};
    h_.function_count = count;
    put();
  }
  /// The thread's block of that number, filled by `event` from the event's number in the thread.
  void add_block(std::uint32_t thread, std::uint32_t index, std::uint64_t sequence,
                 const std::function<Event(std::uint64_t)>& event) {
    auto* header = at<BlockHeader>(h_.blocks_offset + std::uint64_t{index} * kBlockSize);
    header->state = static_cast<std::uint32_t>(BlockState::kFull);
    header->thread = thread;
    header->sequence = sequence;
    header->ticks = karst::arch::time_stamp();
    auto* events = reinterpret_cast<Event*>(header + 1);
    for (std::uint32_t i = 0; i < kEventsPerBlock; ++i) events[i] = event(sequence * kEventsPerBlock + i);
    header->generation = 2;
  }
  static void fail(const char* what) {
    std::perror(what);
    _exit(1);
  }

  int fd = -1;
  std::uint64_t switches_offset = 0;

 private:
  ArenaHeader h_{};
  ArenaWatching watching_{};
  char* base_ = nullptr;
  std::uint64_t end_ = kBlockSize;
};

void ready() {
  std::puts("ready");
  std::fflush(stdout);
}

void wait() {
  ready();
  while (std::getchar() != EOF) {
  }
}

/// Does it again and again until the end of the input.
void until_the_end(const std::function<void()>& act) {
  ready();
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (poll(&input, 1, 0) == 0) act();
}

Event now(bool exit, std::uint32_t id) { return make_event(karst::arch::time_stamp(), exit, id); }

// Pages of this file system raise SIGBUS where the system has no huge page left, which is the usual state.
void hugetlb() {
  const Arena arena({.flags = MFD_ALLOW_SEALING | MFD_HUGETLB, .maps = false});
  wait();
}

// Each arena is cut and sealed a moment after it was made: between a look at the size and one at the seals.
void shrinking() {
  until_the_end([] {
    Arena arena({.seals = F_SEAL_GROW});
    usleep(300);
    if (ftruncate(arena.fd, kBlockSize) == 0) fcntl(arena.fd, F_ADD_SEALS, F_SEAL_SHRINK);
    usleep(300);
    munmap(arena.at<char>(0), arena.size());
    close(arena.fd);
  });
}

// Ticks from the future, in which nothing can have begun.
void future() {
  Arena arena({});
  arena.header().start_ticks = karst::arch::time_stamp() + 1'000'000'000'000ULL;
  arena.put();
  wait();
}

// Days of the clock in no ticks: a rate of none, to divide by.
void no_rate() {
  Arena arena({});
  arena.header().start_monotonic_raw_ns -= 1'000'000'000'000'000ULL;
  arena.put();
  wait();
}

void long_names() {
  Arena arena({});
  std::memset(arena.at<char>(arena.header().text_offset), 'n', kArenaTextSize);
  arena.add_threads(kArenaThreads);
  for (std::uint32_t i = 0; i < kArenaThreads; ++i) arena.threads()[i].given_name_size = kArenaTextSize;
  arena.header().executable_size = arena.header().options_size = kArenaTextSize;
  arena.header().module_count = kArenaModules;
  for (std::uint32_t i = 0; i < kArenaModules; ++i)
    arena.at<ArenaModule>(arena.header().modules_offset)[i].path_size = kArenaTextSize;
  arena.put();
  wait();
}

void many_arguments() {
  Arena arena({});
  arena.header().command_line_size = kArenaTextSize;
  arena.put();
  wait();
}

// It takes a few pages itself, and a reader that touches what it claims 2 GiB.
void sparse() {
  Arena arena({.blocks = 1 << 19});
  arena.header().function_count = kMaxFunctionId;
  arena.header().thread_count = kArenaThreads;
  arena.header().module_count = kArenaModules;
  arena.put();
  arena.watching().slots_used = kWatchSlots;
  arena.watching().watch_count = kWatches;
  wait();
}

// Deep inside, and then exits of calls that are nowhere; all of it has always just happened.
void unmatched() {
  constexpr std::uint32_t kUsed = 2000;
  Arena arena({});
  arena.add_threads(1);
  arena.add_functions(2000);
  const auto fill = [&arena] {
    for (std::uint32_t i = 0; i < kUsed; ++i)
      arena.add_block(0, i, i, [i](std::uint64_t n) {
        const bool exit = i >= kUsed / 2;
        return now(exit, exit ? 1001 + static_cast<std::uint32_t>(n % 999) : 1 + static_cast<std::uint32_t>(n % 1000));
      });
  };
  fill();
  until_the_end([&fill] {
    usleep(200'000);
    fill();
  });
}

// Coroutines begun at the bottom of a deep stack, and places set again and again.
void deep_stacks() {
  constexpr std::uint32_t kUsed = 3000;
  Arena arena({});
  arena.add_threads(1);
  arena.add_functions(10);
  for (std::uint32_t i = 0; i < kUsed; ++i)
    arena.add_block(0, i, i, [i](std::uint64_t n) -> Event {
      if (i < kUsed / 2) return now(false, 1 + static_cast<std::uint32_t>(n % 10));
      if (i < kUsed * 3 / 4) return make_place((n % 7 + 1) * 16, Mark::kSetPlace);
      // Two switches, in six slots: away to a new stack, and back.
      switch (n % 6) {
        case 0:
        case 3:
          return make_mark(karst::arch::time_stamp(), Mark::kSwitched);
        case 1:
        case 5:
          return make_place(0x1000);
        case 2:
          return make_place(0x100000 + n * 16);
        default:
          return make_place(0x2000);
      }
    });
  wait();
}

// Moments that are for ever being changed.
void turning_moments() {
  Arena arena({});
  arena.add_threads(1);
  arena.add_functions(10);
  ArenaWatching& w = arena.watching();
  w.slots_used = kWatchSlots;
  w.watch_count = 1;
  for (std::uint32_t i = 0; i < kWatchSlots; ++i) {
    arena.at<std::uint64_t>(w.slots_offset)[i] = make_slot(1000, 0);
    arena.at<ArenaMoment>(w.moments_offset)[i].turn = 1;
  }
  wait();
}

// Pages come and go while they are read.
void punching() {
  Arena arena({});
  arena.add_threads(4);
  arena.add_functions(100);
  std::uint32_t round = 0;
  until_the_end([&] {
    arena.add_block(round % 4, round % 4096, round / 4,
                    [](std::uint64_t n) { return now(n % 2 != 0, 1 + static_cast<std::uint32_t>(n % 100)); });
    if (++round % 64 == 0)
      fallocate(arena.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kBlockSize),
                static_cast<off_t>(arena.size() - kBlockSize));
    if (round % 256 == 0) usleep(1000);
  });
}

// Counts, threads and blocks change under the reader.
void scribbled() {
  Arena arena({});
  arena.add_threads(100);
  arena.add_functions(1000);
  for (std::uint32_t i = 0; i < 100; ++i)
    arena.add_block(i, i, 0, [](std::uint64_t n) { return now(n % 2 != 0, 1 + static_cast<std::uint32_t>(n % 1000)); });
  const std::uint64_t counts = offsetof(ArenaHeader, executable_offset);
  std::uint64_t random = 1;
  until_the_end([&] {
    for (int i = 0; i < 1000; ++i) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::uint64_t where = random >> 34;
      const std::uint64_t offset = where % 4 == 0   ? counts + where % (offsetof(ArenaHeader, control_offset) - counts)
                                   : where % 4 == 1 ? arena.header().control_offset + where % sizeof(ArenaControl)
                                   : where % 4 == 2 ? arena.header().watching_offset + where % 16
                                                    : arena.header().threads_offset + where % (8 << 20);
      *arena.at<volatile char>(offset) = static_cast<char>(random >> 32);
    }
    usleep(1000);
  });
}

// Sound but for what it does not do: it answers no request, and never lets go of the control page.
void silent() {
  Arena arena({});
  arena.add_threads(1);
  arena.add_functions(3);
  arena.at<ArenaControl>(arena.header().control_offset)->thread = static_cast<std::uint32_t>(ControlThread::kRunning);
  wait();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> ways = {
      {"hugetlb", hugetlb},         {"shrinking", shrinking},
      {"no-rate", no_rate},         {"future", future},
      {"long-names", long_names},   {"many-arguments", many_arguments},
      {"sparse", sparse},           {"unmatched", unmatched},
      {"deep-stacks", deep_stacks}, {"turning-moments", turning_moments},
      {"punching", punching},       {"scribbled", scribbled},
      {"silent", silent},
  };
  const auto way = argc == 2 ? ways.find(argv[1]) : ways.end();
  if (way == ways.end()) {
    std::fprintf(stderr, "usage: hostile WAY\n");
    for (const auto& [name, run] : ways) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  way->second();
}
