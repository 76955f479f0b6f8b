// SPDX-License-Identifier: MIT
// What jumps.S and jumps.cc share: the functions of libc's that they stand before.
#ifndef KARST_RUNTIME_WAYS_OUT_JUMPS_H
#define KARST_RUNTIME_WAYS_OUT_JUMPS_H

/// X(name, constant), in the order of karst_libc: constants count from 0, in C++ and in assembly.
#define KARST_JUMP_FUNCTIONS(X) \
  X(setjmp, kSetjmp)            \
  X(_setjmp, kSetjmpPlain)      \
  X(__sigsetjmp, kSigsetjmp)    \
  X(getcontext, kGetcontext)    \
  X(setcontext, kSetcontext)    \
  X(swapcontext, kSwapcontext)  \
  X(longjmp, kLongjmp)          \
  X(_longjmp, kLongjmpPlain)    \
  X(siglongjmp, kSiglongjmp)    \
  X(__longjmp_chk, kLongjmpChecked)

#endif
