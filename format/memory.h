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

}  // namespace karst::format
