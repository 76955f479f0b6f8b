#include "runtime/system/own_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/system/syscalls.h"

namespace karst::runtime {

void OwnDescriptor::take(long low) {
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
}

void OwnDescriptor::close() {
  if (is_there()) sys::close(number_);
  number_ = -1;
}

/// A number that two files do not share while both are open.
std::uint64_t OwnDescriptor::identity_of(int number) {
  struct stat status {};
  if (sys::call(SYS_fstat, number, sys::word(&status)) != 0) return 0;
  return status.st_ino ^ static_cast<std::uint64_t>(status.st_dev) << 40;
}

}  // namespace karst::runtime
