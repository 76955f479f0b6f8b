// SPDX-License-Identifier: MIT
// Tracy's macros for Vulkan: Karst records nothing of graphics cards, so these compile to nothing.
#ifndef KARST_TRACY_VULKAN_HPP
#define KARST_TRACY_VULKAN_HPP

#include "Tracy.hpp"

using TracyVkCtx = void*;

#define TracyVkContext(...) nullptr
#define TracyVkContextCalibrated(...) nullptr
#define TracyVkContextHostCalibrated(...) nullptr
#define TracyVkDestroy(...)
#define TracyVkContextName(...)
#define TracyVkCollect(...)
#define TracyVkCollectHost(...)
#define TracyVkNamedZone(...)
#define TracyVkNamedZoneC(...)
#define TracyVkNamedZoneS(...)
#define TracyVkNamedZoneCS(...)
#define TracyVkZone(...)
#define TracyVkZoneC(...)
#define TracyVkZoneS(...)
#define TracyVkZoneCS(...)
#define TracyVkZoneTransient(...)
#define TracyVkZoneTransientS(...)

#endif
