// SPDX-License-Identifier: MIT
// The relation of requests (analysis/requests.h).
#pragma once
#include "analysis/requests.h"
#include "answers/relation.h"

namespace karst::answers {

struct RequestRow {
  const analysis::Request& of;
  const Times& times;
};

const Relation& requests();

}  // namespace karst::answers
