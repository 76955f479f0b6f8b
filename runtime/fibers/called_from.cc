// SPDX-License-Identifier: MIT
// Which function an address is in says the table that each module has for exceptions (.eh_frame_hdr): where functions
// begin, in order. The dynamic linker of glibc 2.35 and later finds it without a lock.
#include "runtime/fibers/called_from.h"

#include <dlfcn.h>

#include "arch/cpu.h"
#include "runtime/process/read_memory.h"

// Weak, or found by name: libkarst.so runs with an older glibc, too.
#if defined(DLFO_STRUCT_HAS_EH_DBASE) && defined(KARST_STATIC)
#pragma weak _dl_find_object
#endif

namespace karst::runtime {
namespace {

constexpr std::uintptr_t kMostBeforeSled = 16;
constexpr std::size_t kWords = 128;

#ifdef DLFO_STRUCT_HAS_EH_DBASE
using FindObject = int (*)(void*, dl_find_object*);
FindObject g_find_object;
#endif

struct Module {
  std::uintptr_t address;  // in it
  std::uintptr_t table;    // 0: not known
  std::uintptr_t end;
};

__attribute__((noinline)) void find_table([[maybe_unused]] void* of) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  Module& module = *static_cast<Module*>(of);
  dl_find_object found{};
  if (g_find_object == nullptr || g_find_object(reinterpret_cast<void*>(module.address), &found) != 0) return;
  module.table = reinterpret_cast<std::uintptr_t>(found.dlfo_eh_frame);
  module.end = reinterpret_cast<std::uintptr_t>(found.dlfo_map_end);
#endif
}

/// Where functions begin that have code from one place on.
struct Extent {
  std::uintptr_t begin, end;
};

template <typename T>
bool read(std::uintptr_t from, T& to) {
  return read_memory(from, reinterpret_cast<unsigned char*>(&to), sizeof to, 0) == sizeof to;
}

/// The function that the address is in, by its module's table. {0, 0}: not known.
Extent function_around(std::uintptr_t address) {
  struct Header {
    std::uint8_t version, frames, counts, entries;
    std::int32_t frames_at;
    std::uint32_t count;
  };
  struct Entry {
    std::int32_t code, frame;
  };
  constexpr std::uint8_t kRelative4 = 0x3b;  // DW_EH_PE_datarel | DW_EH_PE_sdata4
  constexpr std::uint8_t kUnsigned4 = 0x03;
  Module module{address, 0, 0};
  // libc may use vector registers, which hold the program's arguments or results here.
  arch::with_vectors_kept(find_table, &module);
  Header header{};
  if (module.table == 0 || !read(module.table, header)) return {};
  if (header.version != 1 || header.entries != kRelative4 || header.counts != kUnsigned4) return {};
  // An entry that cannot be read ends the search.
  bool whole = true;
  const auto begin_of = [&](std::uint32_t i) {
    Entry entry{};
    whole = whole && read(module.table + sizeof header + std::uint64_t{i} * sizeof entry, entry);
    return module.table + static_cast<std::intptr_t>(entry.code);
  };
  std::uint32_t low = 0, high = header.count;  // the first one above the address
  while (whole && low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (begin_of(middle) <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return {};
  const Extent found{begin_of(low - 1), low < header.count ? begin_of(low) : module.end};
  return whole ? found : Extent{};
}

}  // namespace

void prepare_called_from() {
#if defined(DLFO_STRUCT_HAS_EH_DBASE) && defined(KARST_STATIC)
  g_find_object = _dl_find_object;
#elif defined(DLFO_STRUCT_HAS_EH_DBASE)
  g_find_object = reinterpret_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
#endif
}

bool is_called_from(std::uintptr_t entry_sled, std::uintptr_t stack) {
  const Extent function = function_around(entry_sled);
  if (function.begin == 0 || entry_sled - function.begin > kMostBeforeSled) return false;
  std::uintptr_t words[kWords];  // fewer where the stack's memory ends before
  const std::uint32_t size = read_memory(stack, reinterpret_cast<unsigned char*>(words), sizeof words, stack);
  for (std::uint32_t i = 0; i < size / sizeof *words; ++i)
    if (words[i] > function.begin && words[i] < function.end) return true;
  return false;
}

}  // namespace karst::runtime
