// SPDX-License-Identifier: MIT
// Gathers a module's functions from its sleds, sorts them by address, and finds one by halving. Sorting is in place, as
// there is no heap.
#include "runtime/modules/function_table.h"

#include <sys/mman.h>

#include "arch/page.h"
#include "format/event.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using format::SledKind;

namespace {

constexpr std::uint64_t kMostBeforeSled = 5;  // of gcc's: an endbr64, and a byte that makes the address even

// Heap sort (Williams, Floyd 1964). libstdc++'s <algorithm> does not compile without floating point, which the runtime
// must do without; this one needs no memory and no recursion either.
template <typename T, typename Less>
void heap_sort(T* v, std::uint32_t count, Less less) {
  const auto sift_down = [v, less](std::uint32_t root, std::uint32_t size) {
    const T value = v[root];
    for (std::uint32_t child = 2 * root + 1; child < size; child = 2 * root + 1) {
      if (child + 1 < size && less(v[child], v[child + 1])) ++child;
      if (!less(value, v[child])) break;
      v[root] = v[child];
      root = child;
    }
    v[root] = value;
  };
  for (std::uint32_t i = count / 2; i-- != 0;) sift_down(i, count);
  for (std::uint32_t size = count; size > 1; --size) {
    const T greatest = v[0];
    v[0] = v[size - 1];
    v[size - 1] = greatest;
    sift_down(0, size - 1);
  }
}

std::uint64_t count_functions_without_entry(const ModuleImage& image) {
  std::uint64_t count = 0;
  std::uintptr_t last = 0;
  image.for_each_sled([&](const SledPlace& p) {
    count += p.kind != SledKind::kEntry && p.function != last;
    last = p.function;
  });
  return count;
}

/// True if the bytes are what stands between the beginning of a function and its sled.
bool is_before_sled(const unsigned char* p, std::uint64_t size) {
  constexpr unsigned char kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
  if (size >= sizeof kEndbr64) {
    for (const unsigned char byte : kEndbr64)
      if (*p++ != byte) return false;
    size -= sizeof kEndbr64;
  }
  return size == 0 || (size == 1 && *p == 0x90);
}

}  // namespace

// Ids follow addresses, so that neighbours in the program are neighbours in every table.
bool FunctionTable::create(const ModuleImage& image) {
  std::uint64_t entries = 0;
  std::uint64_t colds = 0;
  for_each_owned_sled(image, [&](const SledPlace& p, std::uint32_t /*entry*/, std::uint64_t /*number*/) {
    entries += p.kind == SledKind::kEntry;
    colds += p.kind == SledKind::kCold;
    sleds_ += p.kind != SledKind::kCold;
  });
  without_entry_ = count_functions_without_entry(image);
  if (entries == 0) return true;
  if (entries > format::kMaxFunctionId || colds > format::kMaxFunctionId) return false;
  const std::uint64_t each =
      sizeof *sorted_ + sizeof *entries_ + sizeof *order_ + sizeof *aliases_ + sizeof *functions_with_aliases_ + 1;
  const std::uint64_t size = align_up(entries * each + colds * sizeof(Cold), arch::kPage);
  const long memory = sys::mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(memory)) return false;
  text_begin_ = image.text_begin;
  sorted_ = reinterpret_cast<std::uint64_t*>(memory);
  cold_ = reinterpret_cast<Cold*>(sorted_ + entries);
  order_ = reinterpret_cast<std::uint32_t*>(cold_ + colds);
  entries_ = order_ + entries;
  aliases_ = entries_ + entries;
  functions_with_aliases_ = aliases_ + entries;
  bits_ = reinterpret_cast<std::uint8_t*>(functions_with_aliases_ + entries);

  for_each_owned_sled(image, [&](const SledPlace& p, std::uint32_t entry, std::uint64_t /*number*/) {
    if (p.kind == SledKind::kEntry) sorted_[count_++] = (p.known_by() - text_begin_) << 32 | entry;
  });
  heap_sort(sorted_, count_, [](std::uint64_t a, std::uint64_t b) { return a < b; });
  for (std::uint32_t i = 0; i < count_; ++i) order_[static_cast<std::uint32_t>(sorted_[i])] = i;
  for_each_owned_sled(image, [&](const SledPlace& p, std::uint32_t entry, std::uint64_t number) {
    const std::uint32_t index = order_[entry];
    if (p.kind == SledKind::kEntry) entries_[index] = static_cast<std::uint32_t>(number);
    if (p.kind == SledKind::kEntry && p.always) bits_[index] |= kAlways;
    if (p.late) bits_[index] |= kLate;
    const SiteDefect defect = image.defect_of(p);
    if (defect != SiteDefect::kNone && (bits_[index] & kLeftOut) == 0) {
      bits_[index] |= kLeftOut;
      if (left_out_count_++ == 0) {
        first_defect_ = defect;
        first_left_out_ = p.address;
      }
    }
    if (p.kind != SledKind::kCold && !arch::can_change_live(reinterpret_cast<const unsigned char*>(p.address))) {
      bits_[index] |= kFixed;
      ++fixed_sleds_;
    }
    if (format::is_tail_call(p.kind)) aliases_[index] = 1;
    if (p.kind == SledKind::kCold) cold_[cold_count_++] = {p.address - text_begin_, index};
  });
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (aliases_[i] == 0) continue;
    functions_with_aliases_[with_aliases_++] = i;
    aliases_[i] = with_aliases_;
  }
  heap_sort(cold_, cold_count_, [](const Cold& a, const Cold& b) { return a.offset < b.offset; });
  return true;
}

void FunctionTable::set_patched(std::uint32_t index, bool patched) {
  store(bits_[index], static_cast<std::uint8_t>((bits_[index] & ~kPatched) | (patched ? kPatched : 0)));
}

void FunctionTable::set_wanted(std::uint32_t index, bool wanted) {
  store(bits_[index], static_cast<std::uint8_t>((bits_[index] & ~kWanted) | (wanted ? kWanted : 0)));
}

void FunctionTable::set_fixed(std::uint32_t index) {
  store(bits_[index], static_cast<std::uint8_t>(bits_[index] | kFixed));
  ++fixed_sleds_;
}

void FunctionTable::set_given_back(std::uint32_t index, bool given_back) {
  store(bits_[index],
        static_cast<std::uint8_t>(given_back ? bits_[index] | kGivenBack : bits_[index] & ~unsigned{kGivenBack}));
  given_back_ += given_back ? 1 : ~std::uint32_t{0};
}

std::uint32_t FunctionTable::find(std::uintptr_t begin) const {
  const std::uint64_t offset = begin - text_begin_;
  std::uint32_t low = 0;
  for (std::uint32_t high = count_; low < high;) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (sorted_[middle] >> 32 < offset)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < count_) {
    const std::uint64_t at = sorted_[low] >> 32;
    // Of functions that the linker has folded into one, the last has its call in the sled.
    while (low + 1 < count_ && sorted_[low + 1] >> 32 == at) ++low;
    if (at == offset ||
        (at - offset <= kMostBeforeSled && is_before_sled(reinterpret_cast<const unsigned char*>(begin), at - offset)))
      return low;
  }
  std::uint32_t first = 0;
  for (std::uint32_t high = cold_count_; first < high;) {
    const std::uint32_t middle = first + (high - first) / 2;
    if (cold_[middle].offset < offset)
      first = middle + 1;
    else
      high = middle;
  }
  return first < cold_count_ && cold_[first].offset == offset ? static_cast<std::uint32_t>(cold_[first].index) : kNone;
}

}  // namespace karst::runtime
