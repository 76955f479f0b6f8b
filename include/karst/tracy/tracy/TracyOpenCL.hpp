// SPDX-License-Identifier: MIT
// Tracy's macros for OpenCL: Karst records nothing of graphics cards, so these compile to nothing.
#ifndef KARST_TRACY_OPENCL_HPP
#define KARST_TRACY_OPENCL_HPP

#include "Tracy.hpp"

using TracyCLCtx = void*;

#define TracyCLContext(...) nullptr
#define TracyCLDestroy(...)
#define TracyCLContextName(...)
#define TracyCLCollect(...)
#define TracyCLNamedZoneSetEvent(...)
#define TracyCLZoneSetEvent(...)
#define TracyCLNamedZone(...)
#define TracyCLNamedZoneC(...)
#define TracyCLNamedZoneS(...)
#define TracyCLNamedZoneCS(...)
#define TracyCLZone(...)
#define TracyCLZoneC(...)
#define TracyCLZoneS(...)
#define TracyCLZoneCS(...)
#define TracyCLZoneTransient(...)
#define TracyCLZoneTransientS(...)

#endif
