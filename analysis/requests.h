// SPDX-License-Identifier: MIT
// Requests: what all threads did for one, by what the program says of itself (karst_request() and its like).
//
//   work     from a thread's note that it works on a request to its next such note, or to the end of its history
//   request  from the note that it begins to the note that it ends; where there is none, from its first work or to its
//   last idle     time of a request in which no thread worked on it
//
// A number that begins again after its request has ended is another request. Numbers are a process's own.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/selection.h"
#include "columns/selection.h"
#include "format/note.h"
#include "reader/model.h"
#include "reader/states.h"
#include "reader/trace.h"

namespace karst::analysis {

/// A thread worked on a request.
struct RequestWork {
  std::uint64_t id = 0;
  columns::TickRange range;
};
/// Whether the thread ever said that it works on request `id`. Looks at events without making calls of them.
bool worked_on(const reader::Trace& trace, const reader::Thread& thread, std::uint64_t id);
/// Whether the thread says anything of requests. The same way.
bool tells_of_requests(const reader::Trace& trace, const reader::Thread& thread);
/// Whether the thread has a note of this kind. The same way.
bool has_note(const reader::Trace& trace, const reader::Thread& thread, format::NoteKind kind);
/// In order of time; they do not overlap.
std::vector<RequestWork> work_on_requests(const reader::Calls& calls);

/// Leaves what the thread did while it worked on request `id`: calls that begin then, and of those that it was in
/// already, the parts in that time. Each part is a row, marked open where it was cut, and from a call's second part on
/// also kCallResumed, so that it counts once. Needs all notes, and calls without costs (analysis/tracing_cost.h).
void cut_to_request(reader::Calls& calls, std::uint64_t id);

/// Cuts all calls where `work`, which is that of the thread, begins and ends, so that each row is of one request or of
/// none. A call counts once for each request; the rest as in cut_to_request().
void cut_at_requests(reader::Calls& calls, const std::vector<RequestWork>& work);

struct Request {
  std::uint64_t id = 0;
  std::uint32_t process = 0;                 ///< index into Trace::processes()
  std::uint64_t begin = 0, end = 0;          ///< ticks
  bool begun = false, ended = false;         ///< whether notes say so
  std::uint64_t worked = 0;                  ///< ticks, of all threads together, without the tracer's cost
  std::uint64_t idle = 0;                    ///< ticks
  std::optional<reader::StateTimes> states;  ///< of `worked`, where the trace has them
  std::uint32_t threads = 0;                 ///< that worked on it
  std::uint64_t calls = 0;                   ///< that began in that time
  std::uint32_t most_in = 0;                 ///< the function with the greatest self time; 0: there is none
  std::uint64_t most_ticks = 0;              ///< that self time, without the tracer's cost

  std::uint64_t duration() const { return end - begin; }
};

/// Adds up what threads did for their requests. `trace` and `functions` must outlive it. Memory: some 100 bytes for
/// each note of a request and each function in it. Use from one thread.
class RequestFinder {
 public:
  /// Counts only calls of `functions` when it is not null, and only work in `range`. With `raw` the tracer's cost stays
  /// in the times.
  RequestFinder(const reader::Trace& trace, const FunctionSet* functions, std::optional<columns::TickRange> range,
                bool raw);
  ~RequestFinder();
  RequestFinder(RequestFinder&&) = delete;

  /// `notes` has all of the thread's; `calls` those that count.
  void add(const reader::Thread& thread, const reader::Calls& notes, const reader::Calls& calls);
  /// By process and number, then by time. Call once.
  std::vector<Request> take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::analysis
