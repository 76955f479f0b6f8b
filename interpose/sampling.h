// SPDX-License-Identifier: MIT
// Which allocations are recorded: all, or by chance one in so many bytes (a Poisson process over the bytes of each
// thread, as in gperftools' and jemalloc's profilers: the bytes to the next one have an exponential distribution). Of
// those it remembers the addresses, so that what frees them is recorded as well.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace karst::interpose {

/// What each thread has of it. Begins as zeros.
struct Countdown {
  uint64_t left = 0;    ///< bytes to the next one that is recorded
  uint64_t random = 0;  ///< xorshift64*; 0: the thread has not begun

  uint64_t next_random() {
    random ^= random >> 12;
    random ^= random << 25;
    random ^= random >> 27;
    return random * 0x2545F4914F6CDD1DU;
  }
  /// At least 1.
  void draw(uint64_t mean);
};

/// A set of addresses for all threads, without locks: threads may be stopped, or forked, anywhere. Whether an address
/// may be in it costs two bytes that are read. What finds no room is not in it, and counted.
class AddressSet {
 public:
  /// `memory`: kBytes that are 0. Most of its pages are never touched.
  void use(void* memory) { __atomic_store_n(&tables_, static_cast<Tables*>(memory), __ATOMIC_RELEASE); }

  bool insert(uintptr_t address) {
    Tables& t = *tables_;
    uintptr_t* const slots = window(t, address);
    for (unsigned i = 0; i < kWindow; ++i) {
      uintptr_t free = 0;
      if (__atomic_load_n(&slots[i], __ATOMIC_RELAXED) == 0 &&
          __atomic_compare_exchange_n(&slots[i], &free, address, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        count(t, address, 1);
        return true;
      }
    }
    return false;
  }

  /// Whether it was in it. The usual answer, no, is inlined.
  __attribute__((always_inline)) bool take(uintptr_t address) {
    const Tables* const t = __atomic_load_n(&tables_, __ATOMIC_RELAXED);
    if (t == nullptr || __builtin_expect(__atomic_load_n(&t->counts[count_of(address)], __ATOMIC_RELAXED) == 0, 1))
      return false;
    return find_and_take(address);
  }

 private:
  static constexpr unsigned kCounts = 1U << 16;
  static constexpr unsigned kSlots = 1U << 20;
  static constexpr unsigned kWindow = 64;  // slots in which an address may lie
  struct Tables {
    uint16_t counts[kCounts];  // addresses in the set by a hash
    uintptr_t slots[kSlots + kWindow];
  };

 public:
  static constexpr size_t kBytes = sizeof(Tables);

 private:
  static uint64_t hash(uintptr_t address) { return (address >> 4) * 0x9E3779B97F4A7C15U; }
  static unsigned count_of(uintptr_t address) { return static_cast<unsigned>(hash(address) >> 48); }
  static uintptr_t* window(Tables& t, uintptr_t address) { return &t.slots[hash(address) >> 28 & (kSlots - 1)]; }
  // 2^16 at most lie in the window's slots that share a count, far less than the slots that there are.
  static void count(Tables& t, uintptr_t address, int change) {
    __atomic_add_fetch(&t.counts[count_of(address)], static_cast<uint16_t>(change), __ATOMIC_RELAXED);
  }

  __attribute__((noinline)) bool find_and_take(uintptr_t address) {
    Tables& t = *tables_;
    uintptr_t* const slots = window(t, address);
    for (unsigned i = 0; i < kWindow; ++i) {
      uintptr_t there = address;
      if (__atomic_load_n(&slots[i], __ATOMIC_RELAXED) == address &&
          __atomic_compare_exchange_n(&slots[i], &there, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        count(t, address, -1);
        return true;
      }
    }
    return false;
  }

  Tables* tables_ = nullptr;
};

}  // namespace karst::interpose
