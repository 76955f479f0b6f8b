// SPDX-License-Identifier: MIT
// What calls were given and what they returned (analysis/values.h), for the page.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/values.h"
#include "answers/relation.h"
#include "base/json.h"
#include "engine/columns.h"
#include "engine/index/index.h"
#include "engine/index/noted_threads.h"

namespace karst::engine {

/// Calls that api/values answers about at once, at most.
inline constexpr std::size_t kMostValues = 1000;

/// Numbers in functions() of those that occur and whose values were asked for.
std::vector<std::uint32_t> functions_with_values(const TraceIndex& index);

/// What is noted of a call. Nothing: both are empty.
struct NotedOfCall {
  std::vector<analysis::Value> arguments, returned;
};
/// Of a NotedOfCall.
std::vector<answers::Field> fields_of_noted();
/// api/values: one row.
const answers::Relation& value_answers();

/// Finds values of calls. Which note is whose takes a walk over a thread's calls. It is remembered (NotedThreads): the
/// indices must outlive it. `work` may stop a thread's being read again. Thread-safe.
class Values {
 public:
  Values();
  ~Values();

  /// Which note is whose, of a thread some of whose functions' values were asked for. Null: it has none, or `work` was
  /// stopped.
  std::shared_ptr<const analysis::CallValues> of_thread(const TraceIndex& index, const ThreadIndex& thread, Work* work);
  /// Nothing where its function's values were not asked for.
  NotedOfCall of_call(const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row, Work* work = nullptr);
  /// api/values: those of `rows` of which something is noted.
  void write_calls(Json& json, const TraceIndex& index, const ThreadIndex& thread,
                   const std::vector<std::uint32_t>& rows, Work* work = nullptr);

 private:
  class OfThread;
  /// Null: its function's values were not asked for, or `work` was stopped.
  std::shared_ptr<const OfThread> find(const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row,
                                       Work* work);

  NotedThreads<OfThread> threads_;
};

}  // namespace karst::engine
