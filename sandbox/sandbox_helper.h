// SPDX-License-Identifier: MIT
// A second thread in a sandbox, for work that has two halves: `karst run` waits for what is found in a program's code
// before the program may begin.
//
// It is made before the sandbox gives its rights up, as no thread can be made afterwards, and waits for work while they
// are given up for both.
#pragma once
#include <functional>

namespace karst::sandbox {

/// In the process of a sandbox, before it has a filter. Where there is one CPU, or no thread can be made, does nothing.
void start_helper();

/// Does both, the second one in the helper if there is one, else after the first. Neither may use what the other
/// changes. When both have ended throws what the first, or else the second has thrown. One thread at a time.
void side_by_side(const std::function<void()>& first, const std::function<void()>& second);

}  // namespace karst::sandbox
