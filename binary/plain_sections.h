// SPDX-License-Identifier: MIT
// ELF files whose debug sections are compressed in a way that elfutils does not read. Private to binary/.
#pragma once
#include "base/result.h"

namespace karst::binary {

/// elfutils 0.188 decompresses zlib alone; binutils and mold write zstd as well (-gz=zstd, ELFCOMPRESS_ZSTD). Gives a
/// file that it reads: `fd` itself when nothing in it is compressed by zstd, else a copy in memory with those sections
/// decompressed, and `fd` is closed. On error (damaged, or more than 4 GiB) `fd` is closed.
Result<int> with_plain_sections(int fd);

}  // namespace karst::binary
