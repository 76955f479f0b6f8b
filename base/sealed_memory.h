// SPDX-License-Identifier: MIT
// Bytes handed to another process: in a memfd that nobody can change any more.
#pragma once
#include <cstddef>
#include <span>

#include "base/descriptor.h"

namespace karst {

/// A sealed memfd with these bytes; `name` is shown in /proc. None when there is no memory or descriptor for it.
Descriptor sealed_memory(const char* name, std::span<const std::byte> bytes);

}  // namespace karst
