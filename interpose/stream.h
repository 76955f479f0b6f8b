// SPDX-License-Identifier: MIT
// What the zones of stdio's functions tell of a stream.
#pragma once
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "interpose/call.h"

namespace karst::interpose {

/// -1: there is none behind it. fileno() would say so in errno.
inline int descriptor_of(FILE* stream) {
  const int before = errno;
  const int descriptor = stream != nullptr ? fileno_unlocked(stream) : -1;
  errno = before;
  return descriptor;
}

/// A text that is written, and `more` bytes behind it.
template <typename Call>
int told_text(Zone& zone, const char* text, FILE* stream, long more, Call call) {
  return in_told_zone(zone, KARST_GIVEN(descriptor_of(stream)), call, [&](Values& returned, long result) {
    returned.add(result >= 0 ? static_cast<long>(strlen(text)) + more : -long{errno});
  });
}

}  // namespace karst::interpose
