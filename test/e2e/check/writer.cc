// Lines go into a pipe whose reader takes a page each 20 ms: once it is full, writes are slow.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace {

constexpr int kPages = 6;
constexpr std::size_t kPage = 4096;
int ends[2];

void read_slowly() {
  char page[kPage];
  ssize_t n = 1;
  while (n > 0) {
    usleep(20000);
    n = read(ends[0], page, sizeof page);
  }
}

}  // namespace

__attribute__((noinline)) void append_page(const char* page) {
  if (write(ends[1], page, kPage) != static_cast<ssize_t>(kPage)) _exit(1);
}

int main() {
  char page[kPage];
  std::memset(page, 'x', sizeof page);
  if (pipe(ends) != 0 || fcntl(ends[1], F_SETPIPE_SZ, kPage) < 0) return 1;
  std::thread reader(read_slowly);
  for (int i = 0; i < kPages; ++i) append_page(page);
  close(ends[1]);
  reader.join();
  return 0;
}
