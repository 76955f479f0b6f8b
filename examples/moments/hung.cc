// A program that hangs: two threads take two locks in opposite order.
//
//   karst-g++ -Og -g -pthread hung.cc -o hung
//   karst run --signal USR2 ./hung &  kill -USR2 $(pidof hung) && karst tree hung-*-1.karst
//
// The calls without an end, marked >, are those that it is in.
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

std::mutex g_accounts;
std::mutex g_journal;

void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

void write_journal() {
  const std::lock_guard accounts(g_accounts);
  wait_a_little();
  const std::lock_guard journal(g_journal);
}
void check_journal() {
  const std::lock_guard journal(g_journal);
  wait_a_little();
  const std::lock_guard accounts(g_accounts);
}

int main() {
  std::puts("working");
  std::fflush(stdout);
  std::thread other(check_journal);
  write_journal();
  other.join();
}
