// SPDX-License-Identifier: MIT
// What gcc says of a sibling call (a tail call, in its words) beside the jump, when asked to put its RTL into the text
// (-dP): gcc/doc/rtl.texi, "Side Effect Expressions": (call FUNCTION NBYTES).
#pragma once
#include <string_view>

namespace karst::toolchain {

/// `rtl`: the instruction, each of its lines begun by '#'. True if it is a sibling call that passes nothing on the
/// stack, of a function that does not look at where it returns to. False if that is not certain.
bool may_be_called_in_place(std::string_view rtl);

}  // namespace karst::toolchain
