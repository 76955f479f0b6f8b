// Threads and forked children that open, duplicate, close, read and write files at random, and know themselves which
// file each descriptor is. SEED STEPS LOG: a line `PATH read|write BYTES` for each call goes to LOG, by system calls
// that are no function of libc's. Several threads get each other's numbers again, which is what the test is about.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kPaths = 5, kMostOpen = 6;
// Absolute paths are longer than a value of a call.
constexpr const char* kDirectory = "a_directory_whose_name_is_so_long_that_paths_of_files_in_it_are_longer_than_values";
std::string g_directory;
int g_log;

class Actor {
 public:
  Actor(unsigned seed, bool forks) : random_(seed), forks_(forks) {}

  void act(int steps) {
    for (int i = 0; i < steps; ++i) step();
    while (!open_.empty()) close_one();
    syscall(SYS_write, g_log, log_.data(), log_.size());
  }

 private:
  struct Open {
    int fd;
    std::string path;
  };

  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  Open& any() { return open_[below(static_cast<unsigned>(open_.size()))]; }
  void note(const Open& file, const char* what, ssize_t bytes) {
    log_ += file.path + " " + what + " " + std::to_string(std::max<ssize_t>(bytes, 0)) + "\n";
  }

  void open_one() {
    const std::string name = "file" + std::to_string(below(kPaths)), path = g_directory + "/" + name;
    constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND;
    const int how = static_cast<int>(below(4));
    const int fd = how == 0   ? open(path.c_str(), kFlags, 0600)
                   : how == 1 ? open(("./" + name).c_str(), kFlags, 0600)
                   : how == 2 ? openat(AT_FDCWD, name.c_str(), kFlags, 0600)
                              : open64(name.c_str(), kFlags, 0600);
    if (fd >= 0) open_.push_back({fd, path});
  }

  void close_one() {
    const auto at = open_.begin() + below(static_cast<unsigned>(open_.size()));
    close(at->fd);
    open_.erase(at);
  }

  void duplicate() {
    const Open of = any();
    const int how = static_cast<int>(below(4));
    if (how == 0) {
      Open& onto = any();
      if (dup2(of.fd, onto.fd) == onto.fd) onto.path = of.path;
      return;
    }
    const int fd = how == 1 ? dup(of.fd) : fcntl(of.fd, how == 2 ? F_DUPFD : F_DUPFD_CLOEXEC, below(40));
    if (fd >= 0) open_.push_back({fd, of.path});
  }

  void transfer() {
    char bytes[256] = {};
    Open& file = any();
    const size_t size = 1 + below(sizeof bytes);
    iovec parts[2] = {{bytes, size / 2}, {bytes + size / 2, size - size / 2}};
    switch (below(6)) {
      case 0:
        return note(file, "write", write(file.fd, bytes, size));
      case 1:
        return note(file, "read", read(file.fd, bytes, size));
      case 2:
        return note(file, "read", pread(file.fd, bytes, size, below(1000)));
      case 3:
        return note(file, "write", pwrite(file.fd, bytes, size, below(1000)));
      case 4:
        return note(file, "write", writev(file.fd, parts, 2));
      default:
        return note(file, "read", readv(file.fd, parts, 2));
    }
  }

  void fork_one() {
    const pid_t child = fork();
    if (child != 0) return static_cast<void>(waitpid(child, nullptr, 0));
    log_.clear();
    forks_ = false;
    random_.seed(below(1'000'000));
    act(30);
    _exit(0);
  }

  void step() {
    const unsigned what = below(100);
    if (open_.empty() || (what < 15 && open_.size() < kMostOpen)) return open_one();
    if (what < 30) return close_one();
    if (what < 45 && open_.size() < kMostOpen) return duplicate();
    if (what < 47 && forks_) return fork_one();
    transfer();
  }

  std::mt19937 random_;
  std::vector<Open> open_;
  std::string log_;
  bool forks_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  g_log = static_cast<int>(syscall(SYS_openat, AT_FDCWD, argv[3], O_WRONLY | O_CREAT | O_APPEND, 0600));
  char* here = getcwd(nullptr, 0);
  mkdir(kDirectory, 0700);
  if (chdir(kDirectory) != 0) return 2;
  g_directory = std::string(here) + "/" + kDirectory;
  free(here);
  const auto seed = static_cast<unsigned>(std::atoi(argv[1]));
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back([=] { Actor(seed * 16 + i, i == 0).act(std::atoi(argv[2])); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}
