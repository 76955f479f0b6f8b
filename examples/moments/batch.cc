// A batch job, as it comes: nothing of Karst in its source. What is it doing, and what happens before the record that
// it cannot read?
//
//   karst-g++ -Og -g batch.cc -o batch
//   karst run --signal USR2 ./batch &  kill -USR2 $(pidof batch)     writes batch-PID-1.karst and goes on
//   karst run --trigger report_bad_record ./batch && karst tree batch.karst --kept 1
#include <chrono>
#include <cstdio>
#include <thread>

int parse(int record) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return record % 70 == 69 ? -1 : record;
}
__attribute__((noinline)) void report_bad_record(int record) { std::printf("record %d cannot be read\n", record); }
void store(int) { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

void convert(int record) {
  const int parsed = parse(record);
  if (parsed < 0)
    report_bad_record(record);
  else
    store(parsed);
}

int main() {
  for (int record = 0; record < 200; ++record) convert(record);
}
