// The file of "Worked bytes" in docs/trace-format.md.
#pragma once
#include "format/event.h"
#include "format/trace.h"
#include "write/trace_writer.h"

namespace karst::test {

inline void add_worked(writing::TraceWriter& writer) {
  reader::Process process;
  process.pid = 4711;
  process.parent_pid = 42;
  process.flags = format::kProcessEnded;
  process.wait_status = 0;
  process.start_ticks = 1000;
  process.end_ticks = 1500;
  process.name = "app";
  process.command_line = {"./app", "-v"};
  process.executable = "/w/app";
  process.options = "memory=64M";
  writer.add_processes({&process, 1});
  writer.add_clock({2'500'000'000, 1, {{1000, 70'000, 1'700'000'000'000'000'000, 40}}});
  const reader::Module module{0, 0x400000, 0x401000, 0x402000, 1001, 0, "/w/app", "\xab\xcd\xef"};
  writer.add_modules(0, {&module, 1});
  const reader::Function function{1, 0, 0x401010, 1, false, "main", "main", "app.c"};
  writer.add_functions(0, {&function, 1});
  writer.add_symbols(0, {&function, 1});
  const reader::Thread thread{0, 0, 4711, false, 1100, 0, 0, 0, 0, "app"};
  writer.add_threads(0, {&thread, 1});
  const format::Event events[] = {format::make_event(1100, false, 1), format::make_event(1350, true, 1)};
  writer.add_block(0, 0, 0, 1100, events);
  writer.add_source("app.c", "int main(){}\n");
}

}  // namespace karst::test
