// SPDX-License-Identifier: MIT
#include "symbols/generated_code.h"

#include <utility>

#include "format/trace.h"
#include "sandbox/sandbox.h"
#include "symbols/demangle.h"
#include "symbols/perf_map.h"

namespace karst::symbols {
namespace {

/// In the sandbox.
void look_up(const reader::Process& process, const std::vector<std::uint64_t>& addresses, sandbox::AnswerWriter& out) {
  PerfNames names(addresses);
  std::string problem;
  const std::uint32_t parent = (process.flags & format::kProcessForked) != 0 ? process.parent_pid : 0;
  for (const std::uint32_t pid : {process.pid, parent}) {
    if (pid == 0) continue;
    if (const Status read = names.read(perf_map_of(pid)); !read && problem.empty()) problem = read.error().message;
  }
  if (!names.left_out().empty()) problem = names.left_out();
  out.text(problem);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::string link_name(names.of(i));
    out.text(link_name);
    out.text(link_name.empty() ? link_name : demangle(link_name.c_str()));
  }
}

}  // namespace

GeneratedNames generated_names(const reader::Process& process, const std::vector<std::uint64_t>& addresses,
                               const std::optional<sandbox::Credentials>& as) {
  GeneratedNames result;
  result.names.resize(addresses.size());
  const auto answer = sandbox::in_sandbox({.as = as, .most = std::size_t{256} << 20},
                                          [&](sandbox::AnswerWriter& out) { look_up(process, addresses, out); });
  if (!answer) {
    result.problem = perf_map_of(process.pid).string() + ": " + answer.error().message;
    return result;
  }
  sandbox::AnswerReader in(*answer);
  result.problem = in.text();
  for (GeneratedNames::Name& name : result.names) {
    name.link_name = in.text();
    name.name = in.text();
    if (name.name.empty() || name.link_name.empty()) name = {};
  }
  return result;
}

}  // namespace karst::symbols
