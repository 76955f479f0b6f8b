// SPDX-License-Identifier: MIT
// Functions of Python programs, in an interpreter as it is: CPython calls a function of ours for each frame that it
// evaluates (PEP 523), and that one says when the function is called and left. So a call has its end however it ends;
// what a generator does between two values is a call of its own.
#pragma once

namespace karst::runtime {

/// Whether this process has an interpreter that we know. Says so if it has one that we do not. At start, or in a
/// process that runs. Takes the dynamic linker's lock.
bool has_python();
/// From its first frame on, of an interpreter that has not begun.
void follow_python();
/// Of one that may run: from the next time on that its main thread executes a line of Python.
void follow_running_python();

}  // namespace karst::runtime
