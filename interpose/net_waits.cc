// SPDX-License-Identifier: MIT
// Waits for descriptors to become ready: how many, and which. What is told of them is read after the call, as far as it
// can be read.
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "interpose/call.h"

// _FORTIFY_SOURCE calls these.
extern "C" {
int __poll_chk(pollfd*, nfds_t, int, size_t);
int __ppoll_chk(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t);
}

namespace {

using karst::interpose::copy_in;
using karst::interpose::Text;
using karst::interpose::told;
using karst::interpose::Values;

KARST_ZONE_KIND(poll, "poll", "descriptors:u8,timeout_ms:i8|:r8,ready:s")
KARST_ZONE_KIND(select, "select", "descriptors:i4,timeout_ms:i8|:r8,ready:s")
KARST_ZONE_KIND(epoll_create, "epoll_create", "flags:x|:r8")
KARST_ZONE_KIND(epoll_ctl, "epoll_ctl", "fd:i4,op:e4{ADD=1;DEL=2;MOD=3},of:i4,events:x,data:x|:r8")
KARST_ZONE_KIND(epoll_wait, "epoll_wait", "fd:i4,events:i4,timeout_ms:i8|:r8,data:s")

KARST_BEFORE(poll)
KARST_BEFORE(__poll_chk)
KARST_BEFORE(ppoll)
KARST_BEFORE(__ppoll_chk)
KARST_BEFORE(select)
KARST_BEFORE(pselect)
KARST_BEFORE(epoll_create)
KARST_BEFORE(epoll_create1)
KARST_BEFORE(epoll_ctl)
KARST_BEFORE(epoll_wait)
KARST_BEFORE(epoll_pwait)
KARST_BEFORE(epoll_pwait2)

constexpr int kMostReady = 8;

/// "3,5,12", and "..." where there are more.
class Ready {
 public:
  void add(uint64_t number, uint32_t base = 10) {
    if (++count_ > kMostReady) return;
    if (count_ > 1) put(',');
    char digits[20];
    uint32_t size = 0;
    do digits[size++] = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    if (base == 16) put('0'), put('x');
    while (size != 0) put(digits[--size]);
  }
  bool is_full() const { return count_ > kMostReady; }
  void add_to(Values& values) {
    if (is_full())
      for (const char c : {',', '.', '.', '.'}) put(c);
    values.add(Text{text_, used_});
  }

 private:
  void put(char c) {
    if (used_ < sizeof text_) text_[used_++] = c;
  }
  char text_[100];
  uint32_t used_ = 0;
  int count_ = 0;
};

template <typename Call>
int told_poll(const pollfd* all, nfds_t count, long timeout_ms, Call call) {
  return told(g_poll_zone, KARST_GIVEN(uint64_t{count}, timeout_ms), call, [&](Values& returned, long result) {
    constexpr nfds_t kAtOnce = 32;
    if (result < 0) return returned.add_null();
    Ready ready;
    pollfd some[kAtOnce];
    for (nfds_t from = 0; from < count && result > 0 && !ready.is_full(); from += kAtOnce) {
      const nfds_t part = count - from < kAtOnce ? count - from : kAtOnce;
      const auto size = static_cast<uint32_t>(part * sizeof *some);
      if (copy_in(all + from, some, size, false) != size) return returned.add_null();
      for (nfds_t i = 0; i < part; ++i) {
        if (some[i].revents == 0) continue;
        ready.add(static_cast<uint32_t>(some[i].fd));
        --result;
      }
    }
    ready.add_to(returned);
  });
}

/// -1: for ever, or that cannot be told.
long milliseconds(const timespec* time) {
  timespec copied;
  if (time == nullptr || copy_in(time, &copied, sizeof copied, false) != sizeof copied) return -1;
  return copied.tv_sec * 1000 + copied.tv_nsec / 1000000;
}
long milliseconds(const timeval* time) {
  timeval copied;
  if (time == nullptr || copy_in(time, &copied, sizeof copied, false) != sizeof copied) return -1;
  return copied.tv_sec * 1000 + copied.tv_usec / 1000;
}

template <typename Call>
int told_select(int count, const fd_set* const (&sets)[3], long timeout_ms, Call call) {
  return told(g_select_zone, KARST_GIVEN(count, timeout_ms), call, [&](Values& returned, long result) {
    if (result < 0) return returned.add_null();
    Ready ready;
    for (int from = 0; from < count && !ready.is_full(); from += 64) {
      uint64_t bits = 0;
      for (const fd_set* set : sets) {
        uint64_t part = 0;
        if (set == nullptr) continue;
        const auto* word = reinterpret_cast<const uint64_t*>(set) + from / 64;
        if (copy_in(word, &part, sizeof part, false) != sizeof part) return returned.add_null();
        bits |= part;
      }
      for (int i = 0; i < 64 && from + i < count; ++i)
        if ((bits >> i & 1) != 0) ready.add(static_cast<uint64_t>(from) + static_cast<uint64_t>(i));
    }
    ready.add_to(returned);
  });
}

/// What the program has said with each descriptor; mostly, but not always, its number or an address.
template <typename Call>
int told_epoll(int fd, const epoll_event* events, int most, long timeout_ms, Call call) {
  return told(g_epoll_wait_zone, KARST_GIVEN(fd, most, timeout_ms), call, [&](Values& returned, long result) {
    if (result < 0) return returned.add_null();
    Ready ready;
    for (long i = 0; i < result && !ready.is_full(); ++i) {
      epoll_event event;
      if (copy_in(events + i, &event, sizeof event, false) != sizeof event) return returned.add_null();
      ready.add(event.data.u64, 16);
    }
    ready.add_to(returned);
  });
}

}  // namespace

KARST_EXPORT int poll(pollfd* all, nfds_t count, int timeout) {
  return told_poll(all, count, timeout, [&] { return g_poll(all, count, timeout); });
}
KARST_EXPORT int __poll_chk(pollfd* all, nfds_t count, int timeout, size_t room) {
  return told_poll(all, count, timeout, [&] { return g___poll_chk(all, count, timeout, room); });
}
KARST_EXPORT int ppoll(pollfd* all, nfds_t count, const timespec* timeout, const sigset_t* signals) {
  return told_poll(all, count, milliseconds(timeout), [&] { return g_ppoll(all, count, timeout, signals); });
}
KARST_EXPORT int __ppoll_chk(pollfd* all, nfds_t count, const timespec* timeout, const sigset_t* signals, size_t room) {
  return told_poll(all, count, milliseconds(timeout),
                   [&] { return g___ppoll_chk(all, count, timeout, signals, room); });
}
KARST_EXPORT int select(int count, fd_set* to_read, fd_set* to_write, fd_set* errors, timeval* timeout) {
  return told_select(count, {to_read, to_write, errors}, milliseconds(timeout),
                     [&] { return g_select(count, to_read, to_write, errors, timeout); });
}
KARST_EXPORT int pselect(int count, fd_set* to_read, fd_set* to_write, fd_set* errors, const timespec* timeout,
                         const sigset_t* signals) {
  return told_select(count, {to_read, to_write, errors}, milliseconds(timeout),
                     [&] { return g_pselect(count, to_read, to_write, errors, timeout, signals); });
}
KARST_EXPORT int epoll_create(int size) {
  return told(g_epoll_create_zone, KARST_GIVEN(0), [&] { return g_epoll_create(size); });
}
KARST_EXPORT int epoll_create1(int flags) {
  return told(g_epoll_create_zone, KARST_GIVEN(flags), [&] { return g_epoll_create1(flags); });
}
KARST_EXPORT int epoll_ctl(int fd, int what, int of, epoll_event* event) {
  const auto given = [&](Values& values) {
    karst::interpose::add_all(values, fd, what, of);
    epoll_event copied;
    if (event == nullptr || what == EPOLL_CTL_DEL || copy_in(event, &copied, sizeof copied, false) != sizeof copied)
      return;
    karst::interpose::add_all(values, uint32_t{copied.events}, uint64_t{copied.data.u64});
  };
  return told(g_epoll_ctl_zone, given, [&] { return g_epoll_ctl(fd, what, of, event); });
}
KARST_EXPORT int epoll_wait(int fd, epoll_event* events, int most, int timeout) {
  return told_epoll(fd, events, most, timeout, [&] { return g_epoll_wait(fd, events, most, timeout); });
}
KARST_EXPORT int epoll_pwait(int fd, epoll_event* events, int most, int timeout, const sigset_t* signals) {
  return told_epoll(fd, events, most, timeout, [&] { return g_epoll_pwait(fd, events, most, timeout, signals); });
}
KARST_EXPORT int epoll_pwait2(int fd, epoll_event* events, int most, const timespec* timeout, const sigset_t* signals) {
  return told_epoll(fd, events, most, milliseconds(timeout),
                    [&] { return g_epoll_pwait2(fd, events, most, timeout, signals); });
}
