// SPDX-License-Identifier: MIT
// Words that several threads, or a thread and its signal handlers, read and write. What is stored before a store is
// seen by whoever loads the stored value.
#pragma once

namespace karst::arch {

template <typename T>
T load(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <typename T>
void store(T& word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}
/// True: the word was as expected, and is as desired now.
template <typename T>
bool exchange_if(T& word, T expected, T desired) {
  return __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

}  // namespace karst::arch
