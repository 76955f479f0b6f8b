// SPDX-License-Identifier: MIT
/* Where the vector and x87 registers are kept while other code runs: xsave's area, as the processor has it for these
 * parts.
 */
#ifndef KARST_ARCH_X86_64_VECTORS_H
#define KARST_ARCH_X86_64_VECTORS_H

/* x87, xmm, ymm, and the three of AVX-512: what C code may clobber. */
#define KARST_VECTORS_MASK 0xe7
#define KARST_VECTORS_SIZE 2688 /* they end before that on all processors that there are; can_keep_vectors() looks */
#define KARST_VECTORS_HEADER 512
#define KARST_VECTORS_XMM 160
#define KARST_VECTORS_XMM_SIZE 16

#ifndef __ASSEMBLER__
namespace karst::arch {

/// This processor has xsave, and its area is as the above says.
bool can_keep_vectors();

/// Where the lower half of that xmm register is.
inline const unsigned char* kept_vector(const unsigned char* area, unsigned number) {
  return area + KARST_VECTORS_XMM + number * KARST_VECTORS_XMM_SIZE;
}

}  // namespace karst::arch
#endif
#endif
