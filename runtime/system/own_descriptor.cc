// SPDX-License-Identifier: MIT
#include "runtime/system/own_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

// Numbers of all that there are, 0 in an empty place, for those who close the others. At start, and as a forked child
// gets an arena: one thread changes them.
constexpr std::uint32_t kMost = 8;
int g_numbers[kMost];

void replace_number(int before, int after) {
  for (int& number : g_numbers) {
    if (load(number) != before) continue;
    store(number, after);
    return;
  }
}

void close_from_to(std::uint32_t first, std::uint32_t last) {
  constexpr long kCloseRange = 436;
  if (first > last || sys::call(kCloseRange, first, last, 0) == 0) return;
  // Linux before 5.9. Where there may be a million descriptors, those beyond stay.
  constexpr std::uint32_t kTried = 1 << 16;
  rlimit limit{};
  sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, sys::word(&limit));
  for (std::uint32_t number = first; number <= last && number < kTried && number < limit.rlim_max; ++number)
    sys::close(static_cast<int>(number));
}

}  // namespace

void OwnDescriptor::close_all_others() {
  std::uint32_t from = 0;
  for (;;) {
    std::uint32_t next = ~0U;  // the least of ours from there on
    for (const int& place : g_numbers) {
      const auto number = static_cast<std::uint32_t>(load(place));
      if (number != 0 && number >= from && number < next) next = number;
    }
    if (next == ~0U) return close_from_to(from, ~0U);
    if (next != from) close_from_to(from, next - 1);
    from = next + 1;
  }
}

void OwnDescriptor::take(long low) {
  if (number_ > 0) replace_number(number_, 0);
  number_ = static_cast<int>(low);
  if (low < 0) return;
  constexpr long kHigh = 200;
  long high = sys::call(SYS_fcntl, low, F_DUPFD_CLOEXEC, kHigh);
  // A process of few descriptors counts on the low ones all the more.
  constexpr long kBelowLimit = 16;
  rlimit limit{};
  if (high < 0 && sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, sys::word(&limit)) == 0 && limit.rlim_cur <= kHigh &&
      limit.rlim_cur > kBelowLimit)
    high = sys::call(SYS_fcntl, low, F_DUPFD_CLOEXEC, static_cast<long>(limit.rlim_cur) - kBelowLimit);
  if (high < 0) high = sys::call(SYS_fcntl, low, F_DUPFD_CLOEXEC, 3);
  if (high >= 0) {
    sys::close(static_cast<int>(low));
    number_ = static_cast<int>(high);
  }
  identity_ = identity_of(number_);
  if (number_ > 0) replace_number(0, number_);
}

void OwnDescriptor::close() {
  if (is_there()) sys::close(number_);
  if (number_ > 0) replace_number(number_, 0);
  number_ = -1;
}

/// A number that two files do not share while both are open.
std::uint64_t OwnDescriptor::identity_of(int number) {
  struct stat status {};
  if (sys::call(SYS_fstat, number, sys::word(&status)) != 0) return 0;
  return status.st_ino ^ static_cast<std::uint64_t>(status.st_dev) << 40;
}

}  // namespace karst::runtime
