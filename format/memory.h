// SPDX-License-Identifier: MIT
// Memory that a program takes and gives back: records (NoteKind::kRecord, format/note.h) whose descriptions say what
// happened; their names are those of the functions that were called. libkarst-memory.so makes them
// (interpose/memory.cc), analysis/memory.h reads them.
//
// A record of what was taken follows the call, one of what is given back comes before it: between the two nobody else
// can have that address.
#pragma once

namespace karst::format {

inline constexpr char kAllocated[] = "size:u8|:x";  ///< 0x0: there was none
inline constexpr char kFreed[] = "address:x|";
/// realloc(): a kFreed record of the old address comes before it. 0x0 of a size that is not 0: the old one stays.
inline constexpr char kResized[] = "address:x,size:u8|:x";
inline constexpr char kMapped[] = "length:u8|:x";
inline constexpr char kUnmapped[] = "address:x,length:u8|";
/// mremap(): the old address and length, the new length.
inline constexpr char kRemapped[] = "address:x,old:u8,length:u8|:x";
/// brk(), sbrk(), where the program's data ends: behind a call that has moved it. Between the two is memory, or was.
inline constexpr char kBreakMoved[] = "from:x,to:x|";

/// In the place of a description: the name is a number of bytes. One allocation in so many bytes was recorded, at
/// random: one of size s with the probability 1 - exp(-s / bytes).
inline constexpr char kSampled[] = "sampled:u8";

/// An allocator's functions, by their linker's names: calls of those that a program has in itself are recorded, too.
inline constexpr unsigned kFirstOperator = 9;  ///< among these
inline constexpr const char* kAllocatorFunctions[] = {
    "malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
    // Operators new, then delete.
    "_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t", "_ZdlPv", "_ZdaPv", "_ZdlPvm",
    "_ZdaPvm", "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t", "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t", "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t"};

}  // namespace karst::format
