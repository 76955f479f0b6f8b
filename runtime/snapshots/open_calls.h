// SPDX-License-Identifier: MIT
// The calls that the calling thread is in, from its own history.
#pragma once

namespace karst::runtime {

/// Says them on stderr in one line, the innermost first, as places in modules: the runtime knows no names. Nothing if
/// there are none. Takes some milliseconds for each million events; async-signal-safe.
void say_open_calls();

}  // namespace karst::runtime
