// SPDX-License-Identifier: MIT
// A column of numbers: a vector that does not zero what is about to be written and that grows by
// remapping pages instead of copying them. A hundred million events make gigabytes of columns;
// with std::vector, clearing and copying them costs more than rebuilding the calls does.
//
// Large ones have large pages (base/pages.h): half the time of a report of 10 million calls. Where a virtual machine
// has given its free memory back to the host, to get it again as large pages takes up to a quarter more than as small
// ones. What is reserved is about to be written, so its pages are asked for all at once: on a virtual machine where a
// fault of its own took 14 us a page, this took 3.
#pragma once
#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>

#include "arch/page.h"
#include "base/pages.h"

namespace karst::reader {

/// Throws std::bad_alloc; where there are no exceptions (WebAssembly), ends the program.
[[noreturn]] inline void out_of_memory() {
#ifdef __cpp_exceptions
  throw std::bad_alloc();
#else
  std::abort();
#endif
}

/// Has the kernel put pages behind the whole pages of `bytes` from `begin` on. Where it cannot, they come one by one.
inline void touch_ahead([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  constexpr std::size_t kLeast = std::size_t{1} << 18;  // less is memory that was used before, as a rule
  if (bytes < kLeast) return;
  const std::size_t first = (arch::kPage - reinterpret_cast<std::uintptr_t>(begin) % arch::kPage) % arch::kPage;
  madvise(static_cast<char*>(begin) + first, (bytes - first) / arch::kPage * arch::kPage, MADV_POPULATE_WRITE);
#endif
}

/// Values of a trivial type, used like a std::vector. Calls out_of_memory().
template <typename T>
class Column {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t));

 public:
  using value_type = T;

  Column() = default;
  Column(std::initializer_list<T> values) { assign(values.begin(), values.size()); }
  Column(const Column& other) { assign(other.data_, other.size_); }
  Column(Column&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Column& operator=(Column other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Column() { pages::give_back(data_, capacity_ * sizeof(T)); }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  /// Room for `n`, all of which is about to be written.
  void reserve(std::size_t n) {
    if (n <= capacity_) return;
    const std::size_t had = capacity_;
    reallocate(n);
    touch_ahead(data_ + had, (n - had) * sizeof(T));
  }
  void push_back(T value) {
    if (size_ == capacity_) reallocate(std::max<std::size_t>(64, capacity_ * 2));
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(std::size_t n, T value = T{}) {
    reserve(n);
    if (n > size_) std::fill(data_ + size_, data_ + n, value);
    size_ = n;
  }
  /// `n` elements of any value, whose pages come as they are written: for those that leave most alone.
  void resize_unwritten(std::size_t n) {
    if (n > capacity_) reallocate(n);
    size_ = n;
  }
  /// Declares the first `n` elements written, through data(). Requires n <= capacity().
  void set_size(std::size_t n) { size_ = n; }
  /// Gives back what reserve() took too much.
  void shrink_to_fit() {
    if (size_ < capacity_) reallocate(size_);
  }

  friend bool operator==(const Column& a, const Column& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void assign(const T* values, std::size_t n) {
    reserve(n);
    if (n != 0) std::memcpy(data_, values, n * sizeof(T));
    size_ = n;
  }
  void reallocate(std::size_t n) {
    if (n == 0) {
      pages::give_back(std::exchange(data_, nullptr), std::exchange(capacity_, 0) * sizeof(T));
      return;
    }
    if (n > static_cast<std::size_t>(-1) / sizeof(T)) out_of_memory();
    auto* fresh = static_cast<T*>(pages::resize(data_, capacity_ * sizeof(T), n * sizeof(T)));
    if (fresh == nullptr) out_of_memory();
    data_ = fresh;
    capacity_ = n;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace karst::reader
