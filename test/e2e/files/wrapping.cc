// A server whose history is overwritten many times: a file and a connection that were opened as it began, one number
// that is another file each time, and many calls.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int, char** argv) {
  const int rounds = std::atoi(argv[1]);
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listening, 1) != 0) return 1;
  getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(client, reinterpret_cast<sockaddr*>(&address), size) != 0) return 2;
  const int server = accept(listening, nullptr, nullptr);
  const int log = open("opened-at-its-start", O_CREAT | O_RDWR, 0600);
  std::printf("%d %d %d %d\n", ntohs(address.sin_port), client, server, log);
  char bytes[2] = {};
  for (int i = 0; i < rounds; ++i) {
    const std::string name = "reused-" + std::to_string(i % 2);
    const int reused = open(name.c_str(), O_CREAT | O_RDWR, 0600);
    if (pwrite(reused, bytes, static_cast<size_t>(1 + i % 2), 0) < 0) return 3;  // tells which file it was
    if (write(client, bytes, 1) != 1 || read(server, bytes, 1) != 1 || pwrite(log, bytes, 1, 0) != 1) return 4;
    close(reused);
  }
}
