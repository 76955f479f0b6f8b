// SPDX-License-Identifier: MIT
// What throws ends the module: Debian's libraries for WebAssembly have no exceptions. The page tells that memory is
// out, which is what the sources throw for.
#include <cstddef>
#include <cstdlib>

extern "C" void* __cxa_allocate_exception(std::size_t) noexcept { std::abort(); }
extern "C" void __cxa_throw(void*, void*, void (*)(void*)) { std::abort(); }
