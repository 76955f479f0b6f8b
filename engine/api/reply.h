// SPDX-License-Identifier: MIT
// Replies of the two kinds that the page asks for.
#pragma once
#include <string>
#include <utility>

#include "base/json.h"
#include "engine/api/api.h"

namespace karst::engine {

inline Reply json_reply(Json& json) {
  Reply reply;
  reply.body = json.take();
  return reply;
}

inline Reply binary_reply(std::string body) {
  Reply reply;
  reply.type = "application/octet-stream";
  reply.body = std::move(body);
  return reply;
}

}  // namespace karst::engine
