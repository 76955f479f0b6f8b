// SPDX-License-Identifier: MIT
// Functions of Python programs, in an interpreter as it is: CPython calls a function of ours for each frame that it
// evaluates (PEP 523), and that one says when the function is called and left. So a call has its end however it ends;
// what a generator does between two values is a call of its own.
#pragma once

namespace karst::runtime {

#ifdef KARST_STATIC
// A static program has no dynamic linker that could tell where the interpreter is.
inline bool has_python() { return false; }
inline void follow_python() {}
inline void python_is_switched(bool) {}
#else
/// Whether this process has an interpreter that we know. Says so if it has one that we do not. At start, or in a
/// process that runs. Takes the dynamic linker's lock.
bool has_python();
/// From its first frame on, or, of an interpreter that runs, from the next time on that its main thread executes a line
/// of Python.
void follow_python();
/// Tracing as a whole is on, or off: then the interpreter is as it was without us. Any thread, one at a time.
void python_is_switched(bool on);
#endif

}  // namespace karst::runtime
