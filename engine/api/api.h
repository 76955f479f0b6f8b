// SPDX-License-Identifier: MIT
// Questions and answers of docs/viewer-protocol.md, without the network: the server, the exported page and tests ask
// here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/api/flows.h"
#include "engine/api/locks.h"
#include "engine/api/memory.h"
#include "engine/api/notes.h"
#include "engine/api/requests.h"
#include "engine/api/values.h"
#include "engine/index/index.h"
#include "engine/index/scope.h"
#include "engine/tiles/tiles.h"

namespace karst::engine {

/// Decoded; of a name that comes twice the first counts.
using Parameters = std::map<std::string, std::string, std::less<>>;

struct Reply {
  int status = 200;
  std::string type = "application/json; charset=utf-8";
  std::string body;
  std::string file_name;  ///< not empty: to be saved under this name
};

Reply error_reply(int status, std::string_view message);

/// Thread-safe. Keeps references to the traces, which must outlive it.
class Api {
 public:
  /// `traces`: one or two, ready.
  Api(std::vector<const TraceIndex*> traces, std::string version);

  /// `path` is what follows `api/`. Never fails: a question that makes no sense has an answer with a status of 400 and
  /// up.
  /// When `work` is stopped the answer has the status 499.
  Reply answer(std::string_view path, const Parameters& parameters, Work* work = nullptr);

  /// Set before the first question: what the page is told about the server.
  struct Server {
    bool keep = false;
    /// Makes a .karst of a part (engine/cut/cut.h); null: nobody can here.
    Result<std::vector<std::byte>> (*cut)(const Scope& scope) = nullptr;
    /// It answers SQL, beside what is asked here (engine/server/server.h).
    bool query = false;
  };
  void set_server(Server server) { server_ = server; }

 private:
  // What stands in a question; each fills `error` when it makes no sense.
  class Question;

  Reply trace(const Question& question);
  /// What a kind of track lists (TrackKind::list_name()).
  static Reply list(const TrackKind& kind, const Question& question);
  Reply tiles(const Question& question);
  Reply minimap(const Question& question);
  Reply call(const Question& question);
  Reply occurrences(const Question& question);
  Reply histogram(const Question& question);
  Reply functions(const Question& question);
  Reply flame(const Question& question);
  Reply align(const Question& question);
  Reply findings(const Question& question);
  Reply outliers(const Question& question);
  Reply explain(const Question& question);
  Reply requests(const Question& question);
  Reply notes(const Question& question);
  Reply plots(const Question& question);
  Reply colors(const Question& question);
  Reply frame(const Question& question);
  Reply lock(const Question& question);
  Reply flows(const Question& question);
  Reply memory(const Question& question);
  Reply threads(const Question& question);
  Reply search(const Question& question);
  Reply source(const Question& question);
  Reply state(const Question& question);
  Reply values(const Question& question);
  Reply cut(const Question& question);

  /// The same calls, their times without the tracer's cost unless the question wants them raw. `beside`: the trace that
  /// it is compared with.
  Scope sums_scope(const Question& question, Scope scope, const TraceIndex* beside = nullptr);

  std::shared_ptr<const FilteredLanes> filtered(const TraceIndex& index, const std::vector<std::uint32_t>& functions,
                                                Work* work);

  std::vector<const TraceIndex*> traces_;
  std::string version_;
  Server server_;
  Values values_;
  Notes notes_;
  Memory memory_;
  std::mutex mutex_;  // of what was answered lately
  struct Filtered {
    const TraceIndex* index;
    std::vector<std::uint32_t> functions;
    std::shared_ptr<const FilteredLanes> lanes;
  };
  std::vector<Filtered> filtered_;                               // the latest first
  std::vector<std::pair<std::string, std::string>> remembered_;  // answers that took long, the latest first
  std::optional<std::string> remembered(const std::string& question);
  void remember(const std::string& question, const std::string& body);
};

/// The facts of api/trace.
std::string trace_json(const TraceIndex& index, std::string_view version, std::size_t traces,
                       const Api::Server& server);

}  // namespace karst::engine
