// A program that says of itself what the page's tests look for: two workers with messages now and then and one in a
// burst, values, frames, requests, texts, and a text that no page must obey.
#include <karst/karst.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>

namespace jobs {

__attribute__((noinline)) void work(int rounds) {
  volatile int sink = 0;
  for (int i = 0; i < rounds * 100; ++i) sink = sink + i;
}

__attribute__((noinline)) void burst() {
  for (int i = 0; i < 2000; ++i) {
    KARST_MESSAGE("one of many");
    work(1);
  }
}

__attribute__((noinline)) void serve(std::uint64_t id) {
  karst_request_begin(id);
  karst_request(id);
  KARST_VALUE("queue length", id % 7);
  if (id % 5 == 0) karst_text(("/shop/item/" + std::to_string(id)).c_str());
  if (id % 10 == 3) KARST_MESSAGE("Cache is full");
  work(20);
  ::usleep(200);
  KARST_VALUE("load", static_cast<double>(id) / 3);
  KARST_FRAME("main");
  karst_request(0);
  karst_request_end(id);
}

}  // namespace jobs

int main() {
  const auto loop = [](std::uint64_t from) {
    for (std::uint64_t id = from; id < from + 40; ++id) jobs::serve(id);
  };
  std::thread one(loop, 100);
  std::thread two(loop, 200);
  one.join();
  two.join();
  std::thread many([] { jobs::burst(); });
  many.join();
  karst_message("<img src=x onerror=alert(1)>\n\x1b[31m\u202e tail");
}
