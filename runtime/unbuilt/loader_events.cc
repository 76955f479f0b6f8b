// SPDX-License-Identifier: MIT
#include "runtime/unbuilt/loader_events.h"

#include <link.h>
#include <sys/mman.h>

#include <cstdint>

#include "arch/page.h"
#include "runtime/modules/hooks.h"
#include "runtime/modules/module_image.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

extern "C" {
#pragma weak _r_debug
}

namespace karst::runtime {
namespace {

constexpr std::uint32_t kJumpSize = 5;  // jmp rel32
constexpr unsigned char kReturn = 0xc3;

void (*g_changed)();

/// In the place of _dl_debug_state.
void loader_event() {
  if (_r_debug.r_state == r_debug::RT_CONSISTENT) g_changed();
}

/// A NOP that covers the bytes behind the `ret`, as assemblers pad functions.
bool is_padding(const unsigned char* at) {
  constexpr unsigned char kLong[] = {0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84};  // data16 cs nopw 0x0(%rax,%rax,1)
  constexpr unsigned char kShort[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84};       // cs nopw
  constexpr unsigned char kBytes[] = {0x90, 0x90, 0x90, 0x90}, kTraps[] = {0xcc, 0xcc, 0xcc, 0xcc};
  const auto begins = [at](const auto& bytes) {
    for (std::size_t i = 0; i < sizeof bytes; ++i)
      if (at[i] != bytes[i]) return false;
    return true;
  };
  return begins(kLong) || begins(kShort) || begins(kBytes) || begins(kTraps);
}

/// The pages of code that [at, at + size) lies in.
CodeSegment segment_of(std::uintptr_t at, std::uint64_t size) {
  struct Search {
    std::uintptr_t at;
    std::uint64_t size;
    CodeSegment found;
  } search{at, size, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& wanted = *static_cast<Search*>(context);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& s = info->dlpi_phdr[i];
          const std::uintptr_t begin = info->dlpi_addr + s.p_vaddr;
          if (s.p_type != PT_LOAD || (s.p_flags & PF_X) == 0 || (s.p_flags & PF_W) != 0 || wanted.at < begin ||
              wanted.at + wanted.size > begin + s.p_filesz)
            continue;
          wanted.found.begin = begin / arch::kPage * arch::kPage;
          wanted.found.end = align_up(begin + s.p_filesz, arch::kPage);
          wanted.found.protection = PROT_EXEC | ((s.p_flags & PF_R) != 0 ? PROT_READ : 0);
          return 1;
        }
        return 0;
      },
      &search);
  return search.found;
}

/// Code near the dynamic linker that jumps to loader_event(), which may lie anywhere. 0: there is no memory.
std::uintptr_t make_stub(const CodeSegment& near) {
  const long at = map_near_code(near.begin, near.end, arch::kPage);
  if (at == -1) return 0;
  auto* stub = reinterpret_cast<unsigned char*>(at);
  constexpr unsigned char kJumpByAddress[] = {0xff, 0x25, 0, 0, 0, 0};  // jmp *0(%rip)
  const auto target = reinterpret_cast<std::uint64_t>(loader_event);
  copy(stub, kJumpByAddress, sizeof kJumpByAddress);
  copy(stub + sizeof kJumpByAddress, &target, sizeof target);
  if (sys::mprotect(static_cast<std::uintptr_t>(at), arch::kPage, PROT_READ | PROT_EXEC) == 0)
    return static_cast<std::uintptr_t>(at);
  sys::munmap(stub, arch::kPage);
  return 0;
}

}  // namespace

bool follow_loader(void (*changed)()) {
  if (&_r_debug == nullptr || _r_debug.r_brk == 0 || g_changed != nullptr) return false;
  const std::uintptr_t at = _r_debug.r_brk;
  const CodeSegment segment = segment_of(at, 2 * kJumpSize);
  auto* code = reinterpret_cast<unsigned char*>(at);
  if (segment.end == 0 || code[0] != kReturn || !is_padding(code + 1)) return false;
  const std::uintptr_t stub = make_stub(segment);
  if (stub == 0) return false;
  const std::uintptr_t page = at / arch::kPage * arch::kPage;
  const std::uintptr_t end = align_up(at + kJumpSize, arch::kPage);
  if (sys::mprotect(page, end - page, PROT_READ | PROT_WRITE) != 0) return false;
  g_changed = changed;
  const auto distance = static_cast<std::uint32_t>(stub - (at + kJumpSize));
  code[0] = 0xe9;
  copy(code + 1, &distance, sizeof distance);
  leave_out_of_cores({page, end, segment.protection});
  sys::mprotect(page, end - page, segment.protection);
  return true;
}

}  // namespace karst::runtime
