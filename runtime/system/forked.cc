// SPDX-License-Identifier: MIT
#include "runtime/system/forked.h"

#include <sys/mman.h>

#include "format/arena.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace karst::runtime {
namespace {

std::uint32_t* g_life;  // in a page of its own

}  // namespace

bool own_arena_from_now_on() {
  const long page = sys::mmap(0, KARST_BLOCK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(page)) return false;
  auto* life = reinterpret_cast<std::uint32_t*>(page);
  *life = static_cast<std::uint32_t>(ArenaLife::kOwn);
  if (sys::madvise(life, KARST_BLOCK_SIZE, MADV_WIPEONFORK) != 0) return false;
  g_life = life;
  return true;
}

std::uint32_t* arena_life() { return g_life; }

bool in_forked_child() { return g_life == nullptr || load(*g_life) != static_cast<std::uint32_t>(ArenaLife::kOwn); }

}  // namespace karst::runtime
