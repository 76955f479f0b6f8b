// What jumps.S and jumps.cc share: the words of format/event.h that are put together in assembly.
#ifndef KARST_RUNTIME_HOOKS_JUMPS_H
#define KARST_RUNTIME_HOOKS_JUMPS_H

#include "format/event.h"

#define KARST_MARK_JUMPED 0x7fff01
#define KARST_MARK_PLACE 0x7fff04

#ifndef __ASSEMBLER__
namespace karst::runtime {
static_assert(static_cast<std::uint32_t>(format::Mark::kJumped) == KARST_MARK_JUMPED);
static_assert(static_cast<std::uint32_t>(format::Mark::kPlace) == KARST_MARK_PLACE);
}  // namespace karst::runtime
#endif
#endif
