// SPDX-License-Identifier: MIT
// One handler for all guards. It walks a list that only grows, whose entries are used again, so that it needs no lock;
// an address in none of them has the effect that it would have had without us.
#include "reader/bus_errors.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace karst::reader {

struct BusErrorGuard::Range {
  std::atomic<bool> taken{true};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};  // 0: there is no guard
  std::atomic<bool> met_error{false};
  Range* next = nullptr;
};

namespace {

std::atomic<BusErrorGuard::Range*> g_ranges;
std::uintptr_t g_page_size;
struct sigaction g_before;

bool replace(std::uintptr_t address) {
  for (BusErrorGuard::Range* r = g_ranges.load(); r != nullptr; r = r->next) {
    if (address < r->begin.load() || address >= r->end.load()) continue;
    r->met_error = true;
    void* page = reinterpret_cast<void*>(address / g_page_size * g_page_size);
    return mmap(page, g_page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool ours = info->si_code > 0 && replace(reinterpret_cast<std::uintptr_t>(info->si_addr));
  errno = error;
  if (ours) return;
  if ((g_before.sa_flags & SA_SIGINFO) != 0) {
    g_before.sa_sigaction(signal, info, context);
  } else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
    g_before.sa_handler(signal);
  } else {
    // Comes again at once, and ends the process as if there were no handler.
    sigaction(SIGBUS, &g_before, nullptr);
    if (info->si_code <= 0) raise(SIGBUS);
  }
}

bool install() {
  g_page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return sigaction(SIGBUS, &action, &g_before) == 0;
}

BusErrorGuard::Range* take_range() {
  for (BusErrorGuard::Range* r = g_ranges.load(); r != nullptr; r = r->next)
    if (!r->taken.exchange(true)) return r;
  auto* fresh = new BusErrorGuard::Range;
  fresh->next = g_ranges.load();
  while (!g_ranges.compare_exchange_weak(fresh->next, fresh)) {
  }
  return fresh;
}

}  // namespace

BusErrorGuard::BusErrorGuard(const void* begin, std::size_t size) : range_(take_range()) {
  static const bool installed = install();
  static_cast<void>(installed);
  range_->met_error = false;
  range_->begin = reinterpret_cast<std::uintptr_t>(begin);
  range_->end = reinterpret_cast<std::uintptr_t>(begin) + size;
}

BusErrorGuard::~BusErrorGuard() {
  range_->end = 0;
  range_->begin = 0;
  range_->taken = false;
}

bool BusErrorGuard::met_error() const { return range_->met_error; }

}  // namespace karst::reader
