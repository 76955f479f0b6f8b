#include "view/api/requests.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/requests.h"

namespace karst::view {

void write_requests(Json& json, const TraceIndex& index, std::size_t most, Work* work) {
  const reader::Trace& trace = index.trace();
  analysis::RequestFinder finder(trace, nullptr, std::nullopt, false);
  expect(work, index.calls());
  for (const ThreadIndex& thread : index.threads()) {
    if (!go_on(work, thread.calls.size())) return;
    if (!analysis::tells_of_requests(trace, *thread.thread)) continue;
    const reader::Calls calls = reader::rebuild_calls(trace, *thread.thread);
    finder.add(*thread.thread, calls, calls);
  }
  std::vector<analysis::Request> requests = finder.take();
  std::stable_sort(requests.begin(), requests.end(),
                   [](const analysis::Request& a, const analysis::Request& b) { return a.duration() > b.duration(); });
  json.open('{').field("count", requests.size()).key("requests").open('[');
  for (std::size_t i = 0; i < requests.size() && i < most; ++i) {
    const analysis::Request& request = requests[i];
    json.open('{');
    analysis::write_request(json, trace, index.origin(), request);
    const auto& functions = index.functions().of_process(request.process);
    const bool known = request.most_in != 0 && request.most_in < functions.size();
    // As text, too: JavaScript's numbers hold 53 bits of it.
    json.field("id", std::to_string(request.id))
        .field("process", request.process)
        .field("begin", index.since_origin(request.begin));
    json.field("function", known ? std::int64_t{functions[request.most_in]} : std::int64_t{-1}).close('}');
  }
  json.close(']').close('}');
}

}  // namespace karst::view
