// SPDX-License-Identifier: MIT
#include "engine/api/api.h"

#include <algorithm>
#include <new>

#include "engine/api/answers.h"
#include "engine/api/question.h"
#include "engine/api/reply.h"
#include "engine/api/rows.h"

namespace karst::engine {
namespace {

constexpr std::size_t kRemembered = 24;                           // answers
constexpr std::size_t kRememberedBytes = std::size_t{32} << 20U;  // of all of them

/// What is answered alike: all but the number of the job.
std::string key_of(std::string_view path, const Parameters& parameters) {
  std::string key(path);
  for (const auto& [name, value] : parameters)
    if (name != "job") key.append("&").append(name).append("=").append(value);
  return key;
}

}  // namespace

Reply error_reply(int status, std::string_view message) {
  Json json;
  json.open('{').field("error", message).close('}');
  Reply reply = json_reply(json);
  reply.status = status;
  return reply;
}

Api::Api(std::vector<const TraceIndex*> traces, std::string version)
    : traces_(std::move(traces)), version_(std::move(version)) {}

Reply Api::answer(std::string_view path, const Parameters& parameters, Work* work) {
  struct Route {
    std::string_view path;
    Reply (Api::*answer)(const Question&);
    bool remember;  // takes long on large traces, and is asked for again
  };
  static constexpr Route kRoutes[] = {
      {"trace", &Api::trace, false},
      {"tiles", &Api::tiles, false},
      {"minimap", &Api::minimap, true},
      {"call", &Api::call, false},
      {"occurrences", &Api::occurrences, false},
      {"histogram", &Api::histogram, true},
      {"functions", &Api::functions, true},
      {"flame", &Api::flame, true},
      {"align", &Api::align, true},
      {"findings", &Api::findings, true},
      {"outliers", &Api::outliers, true},
      {"explain", &Api::explain, true},
      {"requests", &Api::requests, true},
      {"notes", &Api::notes, false},
      {"plots", &Api::plots, false},
      {"colors", &Api::colors, false},
      {"frame", &Api::frame, false},
      {"lock", &Api::lock, false},
      {"flows", &Api::flows, false},
      {"memory", &Api::memory, false},
      {"threads", &Api::threads, false},
      {"search", &Api::search, false},
      {"source", &Api::source, false},
      {"state", &Api::state, false},
      {"values", &Api::values, false},
      {"cut", &Api::cut, false},
  };
  const auto reply_of = [&](auto&& answer) {
    const Question question(traces_, parameters, work);
    Reply reply = question.error().empty() ? answer(question) : Reply{};
    if (!question.error().empty()) return error_reply(400, question.error());
    if (is_stopped(work)) return error_reply(499, "this was stopped");
    return reply;
  };
  try {
    for (const Route& route : kRoutes) {
      if (route.path != path) continue;
      const std::string key = route.remember ? key_of(path, parameters) : std::string();
      if (route.remember) {
        if (auto body = remembered(key)) {
          Reply reply;
          if (path == "minimap") reply.type = "application/octet-stream";
          reply.body = std::move(*body);
          return reply;
        }
      }
      Reply reply = reply_of([&](const Question& question) { return (this->*route.answer)(question); });
      if (route.remember && reply.status == 200) remember(key, reply.body);
      return reply;
    }
    for (const TrackKind* kind : all_track_kinds())
      if (!path.empty() && kind->list_name() == path)
        return reply_of([&](const Question& question) { return list(*kind, question); });
  } catch (const std::bad_alloc&) {
    return error_reply(507, "memory is out for this answer: ask about a shorter range or fewer threads");
  }
  return error_reply(404, "there is no api/" + std::string(path));
}

std::optional<std::string> Api::remembered(const std::string& question) {
  const std::lock_guard lock(mutex_);
  for (auto at = remembered_.begin(); at != remembered_.end(); ++at) {
    if (at->first != question) continue;
    std::rotate(remembered_.begin(), at, at + 1);
    return remembered_.front().second;
  }
  return std::nullopt;
}

void Api::remember(const std::string& question, const std::string& body) {
  if (body.size() + question.size() > kRememberedBytes / 4) return;
  const std::lock_guard lock(mutex_);
  remembered_.insert(remembered_.begin(), {question, body});
  std::size_t size = 0;
  for (std::size_t i = 0; i < remembered_.size(); ++i) {
    size += remembered_[i].first.size() + remembered_[i].second.size();
    if (i >= kRemembered || size > kRememberedBytes) {
      remembered_.resize(i);
      break;
    }
  }
}

Reply Api::list(const TrackKind& kind, const Question& question) {
  Json json;
  json.open('{');
  const bool made = kind.use_list(question.index(), question.work(),
                                  [&](const void* row) { write_row(json, question.index(), *kind.list(), row); });
  if (!made) return {};
  json.close('}');
  return json_reply(json);
}

Reply Api::trace(const Question& question) {
  Reply reply;
  reply.body = trace_json(question.index(), version_, traces_.size(), server_);
  return reply;
}

}  // namespace karst::engine
