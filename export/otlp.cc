// SPDX-License-Identifier: MIT
// OpenTelemetry's spans in the JSON form of OTLP files: each line is an ExportTraceServiceRequest, as the OpenTelemetry
// collector's otlpjsonfile receiver reads them. A request is a span, work of a thread on it one below that, and a kept
// moment one below the request that its thread worked on, if there was one.
// Identities come from the traceparent that the program gave; else from the process and the request, so that each
// export of a run has the same ones.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json.h"
#include "export/export.h"
#include "export/span_ids.h"
#include "reader/moments.h"

namespace karst::exporting {
namespace {

constexpr std::size_t kSpansOfLine = 512;
enum Kind : int { kInternal = 1, kServer = 2 };        // SpanKind of the protocol
enum Of : std::uint64_t { kRequest, kWork, kMoment };  // what an identity is made for

/// Work of a thread on a request.
struct Work {
  const reader::Thread* thread;
  analysis::RequestWork of;
  std::optional<TraceParent> parent;  ///< that the thread said meanwhile
};

struct Span {
  TraceId trace{};
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  ///< 0: none
  std::string name;
  Kind kind = kInternal;
  std::uint64_t begin = 0, end = 0;  ///< ticks
};

/// An attribute: AnyValue of the protocol.
void put(Json& json, std::string_view key, std::uint64_t number) {
  json.open('{')
      .field("key", key)
      .key("value")
      .open('{')
      .field("intValue", std::to_string(number))
      .close('}')
      .close('}');
}
void put(Json& json, std::string_view key, std::string_view text) {
  json.open('{').field("key", key).key("value").open('{').field("stringValue", text).close('}').close('}');
}

/// Spans of one process, some hundred a line.
class SpanLines {
 public:
  SpanLines(const reader::Trace& trace, const reader::Process& process, Output& output)
      : trace_(trace), process_(process), output_(output) {}

  /// `attributes(json)` puts them.
  template <typename Attributes>
  void add(const Span& span, Attributes attributes) {
    if (spans_ == 0) begin();
    json_.open('{').field("traceId", hex_of(span.trace)).field("spanId", hex_of(span.id));
    if (span.parent != 0) json_.field("parentSpanId", hex_of(span.parent));
    json_.field("name", span.name).field("kind", static_cast<int>(span.kind));
    json_.field("startTimeUnixNano", time_of(span.begin)).field("endTimeUnixNano", time_of(span.end));
    json_.key("attributes").open('[');
    attributes(json_);
    json_.close(']').close('}');
    if (++spans_ == kSpansOfLine) end();
  }
  void end() {
    if (std::exchange(spans_, 0) == 0) return;
    json_.close(']').close('}').close(']').close('}').close(']').close('}').flush(output_);
    output_.append("\n");
  }

 private:
  void begin() {
    json_ = Json();
    json_.open('{').key("resourceSpans").open('[').open('{').key("resource").open('{').key("attributes").open('[');
    put(json_, "service.name", process_.name);
    put(json_, "process.pid", process_.pid);
    put(json_, "process.executable.path", process_.executable);
    json_.close(']').close('}').key("scopeSpans").open('[').open('{');
    json_.key("scope").open('{').field("name", "karst").close('}').key("spans").open('[');
  }
  std::string time_of(std::uint64_t ticks) const {
    return std::to_string(wall_ns(trace_, ticks).value_or(trace_.clock().to_ns(ticks)));
  }

  const reader::Trace& trace_;
  const reader::Process& process_;
  Output& output_;
  Json json_;
  std::size_t spans_ = 0;
};

class OtlpWriter {
 public:
  OtlpWriter(const reader::Trace& trace, const Options& options, Output& output)
      : trace_(trace), options_(options), output_(output) {}

  void write() {
    collect();
    std::size_t request = 0;
    for (const reader::Process& process : trace_.processes()) {
      if (output_.failed()) return;
      const auto at = static_cast<std::uint32_t>(&process - trace_.processes().data());
      SpanLines lines(trace_, process, output_);
      for (; request != requests_.size() && requests_[request].process == at; ++request)
        write_request(requests_[request], work_[request], process, lines);
      for (const reader::Moment& moment : process.moments) write_moment(moment, process, lines);
      lines.end();
    }
  }

 private:
  /// What is kept of a span of work: moments may lie in it.
  struct AtWork {
    std::uint64_t end;
    TraceId trace;
    std::uint64_t span;
  };

  columns::TickRange range() const { return options_.filter.range.value_or(columns::TickRange()); }

  void collect() {
    analysis::RequestFinder finder(trace_, nullptr, options_.filter.range, true);
    for (const reader::Thread* thread : options_.threads) {
      if (!analysis::tells_of_requests(trace_, *thread)) continue;
      const reader::Calls calls = reader::rebuild_calls(trace_, *thread);
      finder.add(*thread, calls, calls);
      collect_work(*thread, calls);
    }
    requests_ = finder.take();
    std::erase_if(requests_, [range = range()](const analysis::Request& of) {
      return of.end < range.begin || of.begin >= range.end;
    });
    work_.resize(requests_.size());
    for (const Work& work : std::exchange(all_work_, {}))
      if (const auto at = request_of(work)) work_[*at].push_back(work);
  }

  /// The last one of its number that has begun by then; it may also begin a little later.
  std::optional<std::size_t> request_of(const Work& work) const {
    const auto key = std::tuple(work.thread->process, work.of.id, work.of.range.begin);
    const auto next = std::upper_bound(requests_.begin(), requests_.end(), key, [](const auto& a, const auto& of) {
      return a < std::tuple(of.process, of.id, of.begin);
    });
    const auto is_it = [&](auto of) { return of->process == work.thread->process && of->id == work.of.id; };
    if (next != requests_.begin() && is_it(next - 1)) return static_cast<std::size_t>(next - 1 - requests_.begin());
    if (next != requests_.end() && is_it(next)) return static_cast<std::size_t>(next - requests_.begin());
    return std::nullopt;
  }

  void collect_work(const reader::Thread& thread, const reader::Calls& calls) {
    auto note = calls.notes.begin();
    for (const analysis::RequestWork& of : analysis::work_on_requests(calls)) {
      Work work{&thread, of, std::nullopt};
      for (; note != calls.notes.end() && note->ticks < of.range.end; ++note) {
        const std::string_view text = calls.bytes_of(*note);
        if (note->is(format::NoteKind::kText) && note->ticks >= of.range.begin && text.starts_with(kTraceParentHeader))
          if (const auto parent = parse_traceparent(text.substr(kTraceParentHeader.size()))) work.parent = parent;
      }
      if (of.range.end > range().begin && of.range.begin < range().end) all_work_.push_back(work);
    }
  }

  std::uint64_t id(Of of, const reader::Process& process, std::initializer_list<std::uint64_t> numbers) const {
    const auto& pairs = trace_.clock().pairs;
    return id_of({of, pairs.empty() ? 0 : pairs.front().realtime_ns, process.pid, process.start_ticks, id_of(numbers)});
  }
  TraceId trace_id(Of of, const reader::Process& process, std::initializer_list<std::uint64_t> numbers) const {
    const std::uint64_t high = id(of, process, numbers);
    return {high, id_of({high, process.start_ticks})};
  }

  void write_request(const analysis::Request& request, const std::vector<Work>& works, const reader::Process& process,
                     SpanLines& lines) {
    Span span;
    span.name = fmt::format("request {}", request.id);
    span.begin = request.begin;
    span.end = request.end;
    span.id = id(kRequest, process, {request.id, request.begin});
    span.trace = trace_id(kRequest, process, {request.id, request.begin});
    const auto said =
        std::find_if(works.begin(), works.end(), [](const Work& work) { return work.parent.has_value(); });
    if (said != works.end()) {
      span.trace = said->parent->trace;
      span.parent = said->parent->span;
      span.kind = kServer;
    }
    lines.add(span, [&](Json& json) { put_request(json, request, process); });
    for (const Work& work : works) write_work(work, span, process, lines);
  }

  void put_request(Json& json, const analysis::Request& request, const reader::Process& process) const {
    const auto ns = [this](std::uint64_t ticks) { return trace_.clock().to_ns(ticks); };
    put(json, "karst.request", request.id);
    put(json, "karst.work_ns", ns(request.worked));
    put(json, "karst.idle_ns", ns(request.idle));
    put(json, "karst.calls", request.calls);
    put(json, "karst.threads", request.threads);
    if (request.most_in != 0) put(json, "karst.most_in", trace_.function(process, request.most_in).name);
    if (!request.begun || !request.ended)
      put(json, "karst.open", request.begun ? "end" : (request.ended ? "begin" : "begin and end"));
  }

  void write_work(const Work& work, const Span& request, const reader::Process& process, SpanLines& lines) {
    Span span;
    span.trace = request.trace;
    span.parent = request.id;
    span.name = "work";
    span.begin = std::max(work.of.range.begin, range().begin);
    span.end = std::min(work.of.range.end, range().end);
    span.id = id(kWork, process, {work.of.id, work.thread->tid, work.of.range.begin});
    lines.add(span, [&](Json& json) {
      put(json, "thread.id", work.thread->tid);
      put(json, "thread.name", work.thread->name);
    });
    at_work_.insert_or_assign({work.thread->process, work.thread->tid, work.of.range.begin},
                              AtWork{work.of.range.end, span.trace, span.id});
  }

  /// Null: the thread was at no work then.
  const AtWork* at_work(std::uint32_t process, std::uint32_t tid, std::uint64_t ticks) const {
    const auto next = at_work_.upper_bound({process, tid, ticks});
    if (next == at_work_.begin()) return nullptr;
    const auto& [of, work] = *std::prev(next);
    return std::get<0>(of) == process && std::get<1>(of) == tid && ticks < work.end ? &work : nullptr;
  }

  void write_moment(const reader::Moment& moment, const reader::Process& process, SpanLines& lines) {
    if (moment.begin_ticks >= range().end || moment.end_ticks < range().begin) return;
    Span span;
    const reader::Function* of = moment.function == 0 ? nullptr : &trace_.function(process, moment.function);
    span.name = fmt::format("kept: {}{}{}", reader::moment_kind_name(moment.kind), of == nullptr ? "" : " ",
                            of == nullptr ? "" : of->name);
    span.begin = moment.begin_ticks;
    span.end = std::max(moment.begin_ticks, moment.end_ticks);
    span.id = id(kMoment, process, {moment.number, moment.begin_ticks});
    span.trace = trace_id(kMoment, process, {moment.number, moment.begin_ticks});
    const auto at = static_cast<std::uint32_t>(&process - trace_.processes().data());
    if (const AtWork* within = at_work(at, moment.tid, moment.begin_ticks)) {
      span.trace = within->trace;
      span.parent = within->span;
    }
    lines.add(span, [&](Json& json) {
      put(json, "karst.kept", moment.number);
      if (moment.tid != 0) put(json, "thread.id", moment.tid);
      if (!moment.what.empty()) put(json, "karst.asked_for", moment.what);
      if (of == nullptr) return;
      put(json, "code.function.name", of->name);
      if (!of->file.empty()) put(json, "code.file.path", of->file);
      if (of->line != 0) put(json, "code.line.number", of->line);
    });
  }

  const reader::Trace& trace_;
  const Options& options_;
  Output& output_;
  std::vector<analysis::Request> requests_;  // by process and number, then by time
  std::vector<Work> all_work_;               // until it is known of which request
  std::vector<std::vector<Work>> work_;      // by request
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, AtWork> at_work_;  // by process, tid and begin
};

}  // namespace

void export_otlp(const reader::Trace& trace, const Options& options, Output& output) {
  OtlpWriter(trace, options, output).write();
}

}  // namespace karst::exporting
