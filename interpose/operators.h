// SPDX-License-Identifier: MIT
// What stands before operators new and delete that do not call malloc() (operators.cc), in the order of
// format::kAllocatorFunctions.
#pragma once
#include "interpose/slots.h"

namespace karst::interpose {

inline constexpr int kOperators = 20;
extern StandIn g_operators[kOperators];

}  // namespace karst::interpose
