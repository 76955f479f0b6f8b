// SPDX-License-Identifier: MIT
#include "kernel/perf_ring.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

namespace karst::kernel {

int open_perf_event(perf_event_attr attributes, pid_t thread, int cpu) {
  attributes.size = sizeof attributes;
  attributes.exclude_hv = 1;
  attributes.inherit = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

std::string why_perf_is_refused(int error) {
  std::ifstream in("/proc/sys/kernel/perf_event_paranoid");
  int paranoid = 0;
  const bool known = static_cast<bool>(in >> paranoid);
  if (known && paranoid > 2 && (error == EACCES || error == EPERM))
    return fmt::format(
        "perf events are refused, as kernel.perf_event_paranoid is {}: sudo sysctl kernel.perf_event_paranoid=2, or "
        "CAP_PERFMON",
        paranoid);
  if (error == ENOSYS || error == EPERM || error == EACCES)
    return "perf events are refused here (perf_event_open: " + std::string(std::strerror(error)) +
           "); a container needs a seccomp profile that allows it, for example docker run --security-opt "
           "seccomp=unconfined";
  return "perf events cannot be had (perf_event_open: " + std::string(std::strerror(error)) + ")";
}

bool PerfRing::map_all(std::span<PerfRing*> rings, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (PerfRing* const ring : rings) {
    void* const base = mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (base == MAP_FAILED) {
      const int error = errno;
      for (PerfRing* const other : rings) {
        if (other->base != nullptr) munmap(other->base, other->mapped);
        other->base = nullptr;
      }
      errno = error;
      return false;
    }
    ring->base = static_cast<std::byte*>(base);
    ring->mapped = page + bytes;
  }
  return true;
}

void PerfRing::close() {
  if (base != nullptr) munmap(base, mapped);
  if (fd >= 0) ::close(fd);
  base = nullptr;
  fd = -1;
}

std::uint64_t PerfRing::room() const {
  return base == nullptr ? 0 : reinterpret_cast<const perf_event_mmap_page*>(base)->data_size;
}

Status open_beside(const perf_event_attr& attributes, pid_t thread, const PerfRing& ring, std::vector<int>& opened) {
  const int fd = open_perf_event(attributes, thread, ring.cpu);
  if (fd < 0 && (errno == ESRCH || errno == ENODEV || errno == ENXIO)) return Unit{};
  if (fd < 0 && errno == EMFILE)
    return Error{
        "perf events need a descriptor for each thread and CPU, of which there are not enough: raise ulimit -n"};
  if (fd < 0) return Error{why_perf_is_refused(errno)};
  opened.push_back(fd);
  if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring.fd) != 0)
    return Error{"perf events of several threads cannot share a ring here (" + std::string(std::strerror(errno)) + ")"};
  return Unit{};
}

std::uint64_t PerfRing::drain(std::vector<std::byte>& copy,
                              const std::function<void(std::span<const std::byte>)>& take) {
  auto& control = *reinterpret_cast<perf_event_mmap_page*>(base);
  const std::uint64_t head = __atomic_load_n(&control.data_head, __ATOMIC_ACQUIRE);
  std::uint64_t tail = control.data_tail;
  const std::byte* const data = base + control.data_offset;
  const std::uint64_t size = control.data_size;
  const std::uint64_t taken = head - tail;
  while (tail != head) {
    const std::size_t at = tail % size;
    // Records are multiples of 8 bytes, so a header never wraps.
    const auto header = perf_value<perf_event_header>({data + at, sizeof(perf_event_header)}, 0);
    if (header.size < sizeof header || header.size > head - tail) break;
    std::span<const std::byte> record(data + at, header.size);
    if (at + header.size > size) {
      copy.resize(header.size);
      std::copy(data + at, data + size, copy.begin());
      std::copy(data, data + (header.size - (size - at)), copy.begin() + static_cast<std::ptrdiff_t>(size - at));
      record = copy;
    }
    take(record);
    tail += header.size;
  }
  __atomic_store_n(&control.data_tail, head, __ATOMIC_RELEASE);
  return taken;
}

}  // namespace karst::kernel
