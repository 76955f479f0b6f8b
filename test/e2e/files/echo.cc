// A server on loopback that gives back what it gets, by threads and poll(), and the clients that count on it. Prints
// how many bytes came back, of how many, and the port.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

static constexpr int kClients = 6, kRequests = 200;
static std::atomic<long> g_sent, g_back;

static void serve_one(int fd) {
  char bytes[512];
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    poll(&wait, 1, -1);
    const ssize_t size = recv(fd, bytes, sizeof bytes, 0);
    if (size <= 0) break;
    for (ssize_t at = 0; at < size;) at += send(fd, bytes + at, static_cast<size_t>(size - at), 0);
  }
  close(fd);
}

static void ask(sockaddr_in address, int number) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) abort();
  char bytes[300], back[300];
  for (int i = 0; i < kRequests; ++i) {
    const size_t size = static_cast<size_t>(1 + (i * 7 + number) % 300);
    memset(bytes, i, size);
    g_sent += write(fd, bytes, size);
    for (size_t got = 0; got < size;) {
      const ssize_t came = read(fd, back + got, size - got);
      if (came <= 0) abort();
      got += static_cast<size_t>(came);
    }
    if (memcmp(bytes, back, size) == 0) g_back += static_cast<long>(size);
  }
  close(fd);
}

int main() {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(server, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(server, kClients) != 0) return 2;
  getsockname(server, reinterpret_cast<sockaddr*>(&address), &size);
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) threads.emplace_back(ask, address, i);
  for (int i = 0; i < kClients; ++i) {
    sockaddr_in peer{};
    socklen_t peer_size = sizeof peer;
    threads.emplace_back(serve_one, accept(server, reinterpret_cast<sockaddr*>(&peer), &peer_size));
  }
  for (std::thread& thread : threads) thread.join();
  printf("%ld %ld %d\n", g_sent.load(), g_back.load(), ntohs(address.sin_port));
}
