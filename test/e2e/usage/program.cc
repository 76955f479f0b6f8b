// Uses a known amount of CPU time, memory and bytes read, and prints what getrusage says of it: user and system ns
// since it began to work, most resident bytes, minor faults since then, bytes read, switches. With "fork" a child does
// so, and with "wait" it waits for a line behind that.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

constexpr std::size_t kBytes = std::size_t{64} << 20;

long long cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

__attribute__((noinline)) void burn() {
  const long long end = cpu_ns() + 400'000'000;
  while (cpu_ns() < end) {
  }
}

__attribute__((noinline)) long long fill(char* memory) {
  std::memset(memory, 1, kBytes);
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  long long bytes = 0;
  for (std::size_t at = 0; at < kBytes; at += 1 << 20) bytes += read(zeros, memory + at, 1 << 20);
  close(zeros);
  return bytes;
}

void say(const rusage& before, long long bytes) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) { return time.tv_sec * 1'000'000'000LL + time.tv_usec * 1000LL; };
  std::printf("%d %lld %lld %ld %lld %ld\n", getpid(),
              ns(usage.ru_utime) + ns(usage.ru_stime) - ns(before.ru_utime) - ns(before.ru_stime),
              usage.ru_maxrss * 1024LL, usage.ru_minflt - before.ru_minflt, bytes, usage.ru_nvcsw + usage.ru_nivcsw);
  std::fflush(stdout);
}

__attribute__((noinline)) void work() {
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  burn();
  auto memory = std::make_unique<char[]>(kBytes);
  const long long bytes = fill(memory.get());
  usleep(300'000);  // so that it is seen
  say(before, bytes);
}

int main(int count, char** arguments) {
  const std::string how = count > 1 ? arguments[1] : "";
  if (how == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      work();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    return 0;
  }
  work();
  char line[8];
  if (how == "wait" && read(0, line, sizeof line) < 0) return 1;
  return 0;
}
