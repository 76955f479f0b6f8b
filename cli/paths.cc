#include "cli/paths.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "cli/text.h"

namespace karst::cli {

void add_by_option(Command command, std::string& by, bool calls) {
  std::vector<std::string> words = {"wall", "cpu", "blocked"};
  if (calls) words.emplace_back("calls");
  std::string type;
  for (const std::string& word : words) type += (type.empty() ? "" : "|") + word;
  command
      .add_option("--by", by,
                  calls ? "What counts: time (wall), that on a CPU, that blocked, or calls"
                        : "What counts: time (wall, the default), that on a CPU, or that blocked")
      .check(one_of(words))
      .type_name(type);
}

std::string_view Paths::name(std::uint32_t function) const {
  if (function == query::FlameTree::kRoot) return "all";
  if (function == query::FlameTree::kOther) return "(more paths than can be told apart)";
  return parts.functions().functions()[function].name;
}

std::string Paths::weight(std::uint64_t of) const {
  return by_calls ? plural(of, "call") : duration_text(input.trace.clock().to_ns(of));
}

Result<std::unique_ptr<Paths>> paths_of(const Input& input, const std::string& by) {
  const bool by_state = by == "cpu" || by == "blocked";
  if (by_state && input.trace.states().empty())
    return Error{fmt::format(
        "{} does not say when threads were on a CPU, as --by {} needs: record with 'karst run --sched auto'",
        input.trace.name(), by)};
  const query::TimeOf what = by == "cpu"       ? query::TimeOf::kRunning
                             : by == "blocked" ? query::TimeOf::kBlocked
                                               : query::TimeOf::kAll;
  auto paths = std::make_unique<Paths>(input);
  paths->by_calls = by == "calls";
  query::FlameTree tree;
  input.each_thread("adding up paths", [&](const reader::Thread& thread, const reader::Calls& calls) {
    if (calls.size() != 0) tree.add(paths->parts.of(thread, calls), query::kNoFunction, what);
  });
  paths->tree = tree.weighed(input.function_set() == nullptr ? nullptr : &paths->parts.wanted(), paths->by_calls);
  if (paths->tree.nodes().size() == 1) return nothing_passes(input);
  if (paths->tree.truncated()) {
    std::fprintf(stderr, "karst: %s has more than %s paths; what is beyond them is added up\n",
                 printable(input.trace.name()).c_str(), count_text(query::FlameTree::kMaxNodes).c_str());
  }
  return paths;
}

}  // namespace karst::cli
