// SPDX-License-Identifier: MIT
// Tracy's macros for OpenGL: Karst records nothing of graphics cards, so these compile to nothing.
#ifndef KARST_TRACY_OPENGL_HPP
#define KARST_TRACY_OPENGL_HPP

#include "Tracy.hpp"

#define TracyGpuContext
#define TracyGpuContextName(...)
#define TracyGpuCollect
#define TracyGpuNamedZone(...)
#define TracyGpuNamedZoneC(...)
#define TracyGpuNamedZoneS(...)
#define TracyGpuNamedZoneCS(...)
#define TracyGpuZone(...)
#define TracyGpuZoneC(...)
#define TracyGpuZoneS(...)
#define TracyGpuZoneCS(...)
#define TracyGpuZoneTransient(...)
#define TracyGpuZoneTransientS(...)

#endif
