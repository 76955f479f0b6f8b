// All that a trace says as plain text, one fact a line; test/docs/decode_trace.py prints the same.
#pragma once
#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "format/event.h"
#include "format/file_identity.h"
#include "reader/trace.h"

namespace karst::test {

inline std::string escaped(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e || c == '"' || c == '\\') {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// More lines about a note; empty: there is no more to say.
using DescribeNote = std::string (*)(const reader::Trace&, const reader::Thread&, const reader::Calls&,
                                     const reader::Note&);

inline std::string describe(const reader::Trace& trace, DescribeNote describe_note = nullptr) {
  std::string text;
  const auto line = [&text](fmt::string_view format, const auto&... values) {
    fmt::vformat_to(std::back_inserter(text), format, fmt::make_format_args(values...));
    text += '\n';
  };
  line("trace 1.{} {} {}", trace.minor_version(), trace.resolved() ? "resolved" : "raw",
       trace.complete() ? "complete" : "cut");
  line("clock {} {}", trace.clock().ticks_per_second, trace.clock().rate_source);
  for (const auto& pair : trace.clock().pairs) {
    line("pair {} {} {} {}", pair.ticks, pair.monotonic_raw_ns, pair.realtime_ns, pair.uncertainty_ns);
  }
  for (const auto& process : trace.processes()) {
    line("process {} pid {} parent {} flags {} status {} from {} to {} overwritten {} lost {}", process.index,
         process.pid, process.parent_pid, process.flags, process.wait_status, process.start_ticks, process.end_ticks,
         process.overwritten_events, process.lost_events);
    line("name {} executable {} options {}", escaped(process.name), escaped(process.executable),
         escaped(process.options));
    for (const auto& argument : process.command_line) line("argument {}", escaped(argument));
    for (const auto& module : process.modules) {
      line("module {} flags {} bias {} text {} {} loaded {} unloaded {} path {} build-id {}", module.index,
           module.flags(), module.bias, module.text_begin, module.text_end, module.loaded_ticks, module.unloaded_ticks,
           escaped(module.path), escaped(module.build_id));
      format::FileIdentity file;
      if (module.file.size() == format::kFileIdentitySize)
        std::memcpy(static_cast<void*>(&file), module.file.data(), format::kFileIdentitySize);
      if (module.by_file)
        line("file {} size {} modified {} device {}", file.inode, file.size, file.modified_ns, file.device);
    }
    for (const auto& function : process.functions) {
      if (function.id == 0) continue;
      line("function {} module {} address {} filtered {} name {} link {} at {} {}", function.id, function.module,
           function.address, function.filtered ? 1 : 0, escaped(function.name), escaped(function.link_name),
           escaped(function.file), function.line);
      if (!function.values.empty()) line("values {}", escaped(function.values));
    }
    for (const auto& call : process.inlined.all()) {
      line("inlined {} depth {} copies {} name {} at {} {} called {} {}", call.function, call.depth, call.copies,
           escaped(process.inlined.text(call.name)), escaped(process.inlined.text(call.file)), call.line,
           escaped(process.inlined.text(call.call_file)), call.call_line);
    }
    if (process.min_duration_ticks != 0 || process.clock_period_ticks != 0)
      line("mode least {} clock {} longest {}", process.min_duration_ticks, process.clock_period_ticks,
           process.clock_longest_ticks);
    if (process.cost.call != 0)
      line("cost of a call {} inside {} off by {}", process.cost.call, process.cost.inside, process.cost.off_by);
    for (const auto& s : process.switches) {
      line("switch {} from {} of {} begin {} end {} reason {}", s.on ? "on" : "off", s.first, s.count, s.begin_ticks,
           s.end_ticks, s.reason);
    }
    for (const auto& m : process.moments) {
      line(
          "moment {} kind {} from {} to {} kept {} to {} whole {} lost {} function {} thread {} tid {} flags {} at {} "
          "{}",
          m.number, m.kind, m.begin_ticks, m.end_ticks, m.kept_from, m.kept_to, m.whole_from, m.lost_events, m.function,
          m.thread, m.tid, m.flags, m.address, escaped(m.what));
      for (const auto argument : m.arguments) line("argument {}", argument);
    }
    for (const auto& thread : process.threads) {
      line("thread {} tid {} exited {} from {} to {} overwritten {} lost {} name {}", thread.index, thread.tid,
           thread.exited ? 1 : 0, thread.joined_ticks, thread.exited_ticks, thread.overwritten_events,
           thread.lost_events, escaped(thread.name));
      reader::EventReader read = trace.event_reader();
      for (const auto& stored : trace.blocks(thread)) {
        const reader::BlockView block = read(stored);
        line("block {} ticks {} events {}", block.sequence, block.ticks, block.events.size());
        for (const auto event : block.events) {
          if (event == 0) {
            line("hole");
          } else {
            line("{} {} {}", format::event_is_exit(event) ? "exit" : "enter", format::event_function(event),
                 format::event_ticks(event, block.ticks));
          }
        }
      }
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      for (const reader::Note& note : calls.notes) {
        line("note {} kind {} name {} says {}", note.ticks, note.kind, note.name, escaped(calls.bytes_of(note)));
        if (describe_note != nullptr) text += describe_note(trace, thread, calls, note);
      }
    }
  }
  for (const auto& u : trace.untraced()) line("untraced {} {}", escaped(u.program), escaped(u.reason));
  for (const auto& source : trace.sources()) line("source {} {}", escaped(source.path), escaped(source.text));
  const auto& states = trace.states();
  const auto& s = states.source();
  if (!states.empty() || !s.note.empty())
    line("states by {} flags {} error {} cpus {} from {} to {} lost {} overwritten {} faults {} migrations {} note {}",
         static_cast<unsigned>(s.backend), s.flags, s.clock_error_ns, s.cpus, s.begin_ticks, s.end_ticks, s.lost_events,
         s.overwritten_events, s.page_faults, s.migrations, escaped(s.note));
  for (const auto& task : states.tasks())
    line("task {} of {} run {} tracer {} name {}", task.tid, task.pid, task.of_run ? 1 : 0, task.tracer ? 1 : 0,
         escaped(task.name));
  for (const auto& r : states.log().records)
    line("state {} kind {} tid {} other {} value {} cpu {}", r.ticks, r.kind, r.tid, r.other, r.value, r.cpu);
  for (const reader::UsageSeries& series : trace.usage().series) {
    line("series kind {} of {} pid {} tid {} flags {}", static_cast<unsigned>(series.kind),
         static_cast<unsigned>(series.of), series.pid, series.tid, series.thinned ? 1 : 0);
    for (const reader::UsagePoint& point : series.points) line("point {} value {}", point.ticks, point.value);
  }
  return text;
}

}  // namespace karst::test
