// SPDX-License-Identifier: MIT
#include "runtime/recording/interruptions.h"

#include <linux/rseq.h>
#include <sys/rseq.h>

#include <cstddef>
#include <cstdint>

#include "arch/cpu.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"

// glibc's: where a thread's area lies from its thread pointer, and its size; 0: the threads are not registered.
#pragma weak __rseq_offset
#pragma weak __rseq_size

namespace karst::runtime {
namespace {

/// What the sequence is: one byte, which is no code. Where a thread would go on that was interrupted in it has to
/// follow the signature that the thread was registered with, or the kernel kills the process.
struct Nowhere {
  std::uint32_t signature;
  char abort[4];
  char begin[8];
};
constexpr Nowhere kNowhere = {RSEQ_SIG, {}, {}};

const rseq_cs kNever = {0, 0, reinterpret_cast<std::uintptr_t>(kNowhere.begin), 1,
                        reinterpret_cast<std::uintptr_t>(kNowhere.abort)};

/// The calling thread's, or null. Threads that are found by their ids may share another's.
struct rseq* area() {
  if (&__rseq_offset == nullptr || &__rseq_size == nullptr || __rseq_size == 0 || threads_are_found_by_tid())
    return nullptr;
  auto* found = reinterpret_cast<struct rseq*>(arch::thread_pointer() + static_cast<std::uintptr_t>(__rseq_offset));
  return static_cast<std::int32_t>(load(found->cpu_id)) >= 0 ? found : nullptr;
}

}  // namespace

void notice_interruptions() {
  if (struct rseq* own = area(); own != nullptr) store(own->rseq_cs, __u64{reinterpret_cast<std::uintptr_t>(&kNever)});
}

void notice_none() {
  if (struct rseq* own = area(); own != nullptr) store(own->rseq_cs, __u64{0});
}

bool may_have_been_interrupted() {
  struct rseq* own = area();
  return own == nullptr || load(own->rseq_cs) != reinterpret_cast<std::uintptr_t>(&kNever);
}

}  // namespace karst::runtime
