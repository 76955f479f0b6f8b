// SPDX-License-Identifier: MIT
// Answers that a karst on another machine gives. The page itself is ours: what comes from there is data, and nothing of
// it is run.
#pragma once
#include <memory>
#include <variant>

#include "engine/remote/link.h"
#include "engine/server/source.h"

namespace karst::engine {

/// Connects. A connection that is lost later is tried again, for as long as the source is there; pages hear of both
/// (docs/viewer-protocol.md, `api/alive`). Ignores SIGPIPE from here on.
std::variant<std::unique_ptr<Source>, LinkLoss> remote_source(RemoteOptions options);

}  // namespace karst::engine
