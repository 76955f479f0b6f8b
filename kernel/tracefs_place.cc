// SPDX-License-Identifier: MIT
#include "kernel/tracefs_place.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/process_stat.h"

namespace karst::kernel {
namespace {

constexpr long kTracefsMagic = 0x74726163;
constexpr std::string_view kPrefix = "karst-";
constexpr const char* kHow = "run karst as root (sudo karst run ...)";

bool is_tracefs(const char* path) {
  struct statfs status {};
  return statfs(path, &status) == 0 && status.f_type == kTracefsMagic;
}

/// Tids in events are those of the first namespace; in another one they would be taken for other threads'.
bool in_first_pid_namespace() {
  constexpr ino_t kFirst = 0xEFFFFFFC;  // PROC_PID_INIT_INO
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == kFirst;
}

/// When the process was started, in clock ticks after boot; none when it is not there.
std::optional<std::uint64_t> start_of(pid_t pid) { return ProcessStat::of(pid).number(ProcessStat::kStartTicks); }

/// A mount that is in no directory. None: errno says why.
Descriptor mount_detached() {
  const Descriptor context(fsopen("tracefs", FSOPEN_CLOEXEC));
  if (!context || fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return {};
  return Descriptor(fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
}

}  // namespace

Result<TracefsPlace> TracefsPlace::find() {
  if (!in_first_pid_namespace())
    return Error{
        "ftrace numbers threads as the system does, which this container does not see: run karst outside of it"};
  std::string path;
  for (const char* usual : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"})
    if (path.empty() && is_tracefs(usual)) path = usual;
  Descriptor mount;
  if (path.empty()) {
    mount = mount_detached();
    if (!mount && errno == EPERM) return Error{std::string("ftrace may not be used: ") + kHow};
    if (!mount)
      return Error{std::string("there is no tracefs (") + std::strerror(errno) +
                   "); the kernel needs CONFIG_EVENT_TRACING"};
    path = "/proc/self/fd/" + std::to_string(mount.get());
  }
  TracefsPlace place(path, std::move(mount));
  if (access((path + "/instances").c_str(), W_OK | X_OK) != 0)
    return Error{std::string("ftrace may not be used (") + path + "/instances: " + std::strerror(errno) + "): " + kHow};
  if (access((path + "/events/sched/sched_switch").c_str(), F_OK) != 0)
    return Error{"ftrace has no scheduler events; the kernel needs CONFIG_EVENT_TRACING"};
  return place;
}

std::string own_instance_name() {
  return std::string(kPrefix) + std::to_string(getpid()) + "-" + std::to_string(start_of(getpid()).value_or(0));
}

bool is_orphan(const std::string& instance) {
  if (!instance.starts_with(kPrefix)) return false;
  const char* const end = instance.data() + instance.size();
  pid_t pid = 0;
  const auto first = std::from_chars(instance.data() + kPrefix.size(), end, pid);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-' || pid <= 0) return false;
  std::uint64_t start = 0;
  const auto second = std::from_chars(first.ptr + 1, end, start);
  if (second.ec != std::errc() || second.ptr != end) return false;
  const auto now = start_of(pid);
  return !now || *now != start;
}

int remove_orphans(const TracefsPlace& place) {
  int removed = 0;
  std::error_code error;
  std::vector<std::filesystem::path> orphans;
  for (std::filesystem::directory_iterator at(place.path() + "/instances", error), end; !error && at != end;
       at.increment(error))
    if (is_orphan(at->path().filename())) orphans.push_back(at->path());
  // A process that reads one of them, a tool or a person, keeps it there; then the next run tries again.
  for (const auto& orphan : orphans) removed += rmdir(orphan.c_str()) == 0 ? 1 : 0;
  return removed;
}

}  // namespace karst::kernel
