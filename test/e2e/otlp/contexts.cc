// A server of three requests: one that is part of somebody else's, one that stands alone, one whose context is none.
#include <karst/karst.h>
#include <unistd.h>

#include <thread>

constexpr const char* kContext = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

__attribute__((noinline)) void serve(unsigned milliseconds) { usleep(milliseconds * 1000); }

__attribute__((noinline)) void part_of_other(unsigned milliseconds) {
  karst_request(1);
  serve(milliseconds);
  karst_request(0);
}

int main() {
  karst_request_begin(1);
  karst_request(1);
  karst_request_context(kContext);
  serve(1);
  karst_request(0);
  std::thread(part_of_other, 2).join();
  karst_request_end(1);

  karst_request_begin(2);
  karst_request(2);
  serve(60);  // the slowest
  karst_request(0);
  karst_request_end(2);

  karst_request(3);  // nobody says where it begins and ends
  karst_request_context("00-00000000000000000000000000000000-00f067aa0ba902b7-01");
  karst_request_context(nullptr);
  karst_text("traceparent: 00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01");
  karst_text("traceparent: ");
  serve(1);
  karst_request(0);
}
