// SPDX-License-Identifier: MIT
// Who answers what a page asks under `api/`: traces on this machine (local_source.h), or a karst on another one
// (engine/remote/remote_source.h). It knows no HTTP; the server (server.h) and engine/remote/far_end.h bring questions.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/api/api.h"

namespace karst::engine {

struct SourceReply : Reply {
  SourceReply() = default;
  SourceReply(Reply whole) : Reply(std::move(whole)) {}  // NOLINT(google-explicit-constructor)
  /// Not null: the body is what this appends, call by call, until it returns false. It may wait, for a quarter of a
  /// second. That nobody wants more is known by its destruction.
  std::function<bool(std::string&)> stream;
};

/// Thread-safe.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// `path` is what follows `api/`. Waits for as long as the answer takes.
  virtual SourceReply answer(std::string_view path, const Parameters& parameters) = 0;
  /// A page is opened: it is to have what there is by now.
  virtual void page_is_opened() = 0;
  /// All answers under way end soon, and so does each that is asked for from here on.
  virtual void stop() = 0;
  /// Why nothing can be shown, in the end; empty: something can, or may still.
  virtual std::string failure() const = 0;
};

}  // namespace karst::engine
