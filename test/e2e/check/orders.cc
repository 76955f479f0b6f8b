// A shop that asks for each order of a list by itself: N+1. Its directory holds a file for each order.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kOrders = 200;

void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::string file_of(const std::string& directory, int order) { return directory + "/order" + std::to_string(order); }

}  // namespace

__attribute__((noinline)) void make_orders(const std::string& directory) {
  for (int order = 0; order < kOrders; ++order) {
    const int file = open(file_of(directory, order).c_str(), O_WRONLY | O_CREAT, 0600);
    if (file < 0 || write(file, "100", 3) != 3) give_up("write");
    close(file);
  }
}

__attribute__((noinline)) long load_order(const std::string& directory, int order) {
  char text[16] = {};
  const int file = open(file_of(directory, order).c_str(), O_RDONLY);
  if (file < 0 || read(file, text, sizeof text - 1) != 3) give_up("read");
  close(file);
  usleep(20);  // the way to a server
  return std::atol(text);
}

__attribute__((noinline)) long load_orders(const std::string& directory) {
  long sum = 0;
  for (int order = 0; order < kOrders; ++order) sum += load_order(directory, order);
  return sum;
}

__attribute__((noinline)) void show(long sum) {
  std::printf("%ld\n", sum);
  usleep(20000);
}

int main(int, char** argv) {
  make_orders(argv[1]);
  for (int i = 0; i < 2; ++i) show(load_orders(argv[1]));
  return 0;
}
