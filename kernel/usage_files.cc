// SPDX-License-Identifier: MIT
// Files stay open, so that a reading is one system call, and so that a process's are never those of another one that
// has got its number. All numbers are cut off at what 64 bits with a sign hold.
#include "kernel/usage_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <system_error>

#include "base/process_stat.h"

namespace karst::kernel {

namespace fs = std::filesystem;
using format::UsageKind;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t times(std::uint64_t number, std::uint64_t factor) {
  const auto product = static_cast<unsigned __int128>(number) * factor;
  return product > static_cast<unsigned __int128>(kMost) ? kMost : static_cast<std::int64_t>(product);
}

/// The number that `text` begins with, behind blanks; too large a one counts as the largest.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc::result_out_of_range) return std::numeric_limits<std::uint64_t>::max();
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// The number behind `key`, which begins a line, or a word of one.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1))
    if (at == 0 || text[at - 1] == '\n' || text[at - 1] == ' ') return leading_number(text.substr(at + key.size()));
  return std::nullopt;
}

std::uint64_t tick_ns() {
  static const std::uint64_t ns = 1'000'000'000 / static_cast<std::uint64_t>(std::max(sysconf(_SC_CLK_TCK), 1L));
  return ns;
}

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void say_if_known(const SayUsage& say, UsageKind kind, std::optional<std::uint64_t> number, std::uint64_t factor) {
  if (number) say(kind, times(*number, factor));
}

/// /proc/pressure/*, or a cgroup's: "some avg10=... total=N", "full ...", in microseconds.
void say_pressure(const SayUsage& say, std::string_view text, UsageKind some, UsageKind full) {
  constexpr std::uint64_t kMicrosecond = 1000;
  const std::size_t full_at = text.find("full ");
  say_if_known(say, some, number_of(text.substr(0, full_at), "total="), kMicrosecond);
  if (full_at != text.npos && full != UsageKind{})
    say_if_known(say, full, number_of(text.substr(full_at), "total="), kMicrosecond);
}

void say_pressures(const SayUsage& say, const std::array<SystemFile, 3>& files) {
  say_pressure(say, files[0].read(), UsageKind::kCpuPressure, {});  // on a machine it says nothing of "full"
  say_pressure(say, files[1].read(), UsageKind::kMemoryPressure, UsageKind::kMemoryPressureFull);
  say_pressure(say, files[2].read(), UsageKind::kIoPressure, UsageKind::kIoPressureFull);
}

/// The names in a directory that begin so, in order.
std::vector<std::string> names_in(const std::string& directory, std::string_view start) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (std::string name = at->path().filename().string(); name.starts_with(start)) names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

std::string first_line(const std::string& path) {
  const SystemFile file(path);
  const std::string_view text = file.read();
  return std::string(text.substr(0, text.find('\n')));
}

bool is_directory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

SystemFile::SystemFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
SystemFile::SystemFile(Descriptor file) : file_(std::move(file)) {}

std::string_view SystemFile::read() const {
  static thread_local std::array<char, std::size_t{64} << 10> text;
  const ssize_t size = file_ ? pread(file_.get(), text.data(), text.size(), 0) : -1;
  return size > 0 ? std::string_view(text.data(), static_cast<std::size_t>(size)) : std::string_view();
}

MachineUsage::MachineUsage(const std::string& root)
    : stat_(root + "/proc/stat"),
      memory_(root + "/proc/meminfo"),
      pressure_{SystemFile(root + "/proc/pressure/cpu"), SystemFile(root + "/proc/pressure/memory"),
                SystemFile(root + "/proc/pressure/io")} {
  const std::string policies = root + "/sys/devices/system/cpu/cpufreq";
  for (const std::string& policy : names_in(policies, "policy")) {
    SystemFile file(policies + "/" + policy + "/scaling_cur_freq");
    if (file && frequencies_.size() < kMostFrequencies) frequencies_.push_back(std::move(file));
  }
  find_temperatures(root + "/sys/class");
}

void MachineUsage::find_temperatures(const std::string& sys) {
  // Others, as those of ACPI and of disks, may take milliseconds to read.
  const auto is_processor = [](const std::string& name) {
    return name == "x86_pkg_temp" || name == "cpu-thermal" || name == "cpu_thermal" || name == "coretemp" ||
           name == "k10temp" || name == "zenpower";
  };
  for (const std::string& zone : names_in(sys + "/thermal", "thermal_zone"))
    if (is_processor(first_line(sys + "/thermal/" + zone + "/type")))
      temperatures_.emplace_back(sys + "/thermal/" + zone + "/temp");
  if (!temperatures_.empty()) return;
  for (const std::string& device : names_in(sys + "/hwmon", "hwmon"))
    if (is_processor(first_line(sys + "/hwmon/" + device + "/name")))
      temperatures_.emplace_back(sys + "/hwmon/" + device + "/temp1_input");
}

void MachineUsage::read(const SayUsage& say) const {
  const std::string_view stat = stat_.read();
  // cpu user nice system idle iowait irq softirq steal: in ticks; guests' time is in user.
  std::array<std::uint64_t, 8> ticks{};
  std::size_t known = 0;
  for (std::size_t at = stat.starts_with("cpu ") ? 4 : stat.npos; at < stat.find('\n') && known < ticks.size();) {
    const auto number = leading_number(stat.substr(at));
    if (!number) break;
    ticks[known++] = *number;
    at = stat.find(' ', stat.find_first_not_of(' ', at));
  }
  if (known >= 7) {
    const auto busy = static_cast<unsigned __int128>(ticks[0]) + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
    say(UsageKind::kCpu, times(busy > kAll ? kAll : static_cast<std::uint64_t>(busy), tick_ns()));
  }
  if (known == ticks.size()) say(UsageKind::kStolen, times(ticks[7], tick_ns()));
  say_if_known(say, UsageKind::kSwitches, number_of(stat, "ctxt "), 1);
  constexpr std::uint64_t kKibibyte = 1024;
  const std::string_view memory = memory_.read();
  const auto all = number_of(memory, "MemTotal:");
  const auto available = number_of(memory, "MemAvailable:");
  if (all && available && *available <= *all) say(UsageKind::kMemory, times(*all - *available, kKibibyte));
  say_if_known(say, UsageKind::kMemoryLimit, all, kKibibyte);
  say_pressures(say, pressure_);
  std::int64_t sum = 0;
  std::int64_t count = 0;
  for (const SystemFile& file : frequencies_) {
    constexpr std::uint64_t kMostKilohertz = 1'000'000'000;
    const auto kilohertz = leading_number(file.read());
    if (!kilohertz || *kilohertz > kMostKilohertz) continue;
    sum += times(*kilohertz, 1000);
    ++count;
  }
  if (count != 0) say(UsageKind::kFrequency, sum / count);
  std::optional<std::uint64_t> hottest;  // of those below zero, nothing is said
  for (const SystemFile& file : temperatures_) hottest = std::max(hottest, leading_number(file.read()));
  say_if_known(say, UsageKind::kTemperature, hottest, 1);
}

GroupUsage::GroupUsage(std::string_view memberships, const std::string& root) {
  const std::string all = root + "/sys/fs/cgroup";
  // A line for each hierarchy: number:controllers:path.
  while (!memberships.empty()) {
    const std::string_view line = memberships.substr(0, memberships.find('\n'));
    memberships.remove_prefix(std::min(line.size() + 1, memberships.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == line.npos ? first : first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string path(line.substr(second + 1));
    // A group outside of our namespace is not to be seen, and the root is the whole machine, if it is no namespace's.
    if (!path.starts_with('/') || (path + "/").find("/../") != path.npos) continue;
    if (path == "/") path.clear();
    if (controllers.empty()) {
      find_second(is_directory(all + "/unified") ? all + "/unified" : all, path);
      continue;
    }
    const auto has = [&](std::string_view name) {
      return ("," + std::string(controllers) + ",").find("," + std::string(name) + ",") != std::string::npos;
    };
    // Where a container has no namespace of groups, its group is the root of what it sees.
    const std::string mount = all + "/" + std::string(controllers);
    const std::string directory = is_directory(mount + path) ? mount + path : mount;
    if (path.empty()) continue;
    if (has("memory")) find_memory(directory);
    if (has("cpu")) find_cpu(directory);
    if (has("cpuacct")) cpu_used_ = SystemFile(directory + "/cpuacct.usage");
  }
}

void GroupUsage::find_second(const std::string& mount, const std::string& path) {
  const std::string directory = is_directory(mount + path) ? mount + path : mount;
  if (!SystemFile(directory + "/cgroup.type")) return;  // the root
  if (!cpu_) cpu_ = SystemFile(directory + "/cpu.stat");
  if (!memory_) memory_ = SystemFile(directory + "/memory.current");
  for (std::string at = directory; at.size() >= mount.size(); at.resize(at.rfind('/')))
    if (SystemFile limit(at + "/memory.max"); limit) limits_.push_back(std::move(limit));
  pressure_ = {SystemFile(directory + "/cpu.pressure"), SystemFile(directory + "/memory.pressure"),
               SystemFile(directory + "/io.pressure")};
}

void GroupUsage::find_memory(const std::string& directory) {
  memory_ = SystemFile(directory + "/memory.usage_in_bytes");
  memory_stat_ = SystemFile(directory + "/memory.stat");
}

void GroupUsage::find_cpu(const std::string& directory) { cpu_ = SystemFile(directory + "/cpu.stat"); }

void GroupUsage::read(const SayUsage& say) const {
  const std::string_view cpu = cpu_.read();
  constexpr std::uint64_t kMicrosecond = 1000;
  say_if_known(say, UsageKind::kCpu, number_of(cpu, "usage_usec "), kMicrosecond);
  say_if_known(say, UsageKind::kThrottled, number_of(cpu, "throttled_usec "), kMicrosecond);
  say_if_known(say, UsageKind::kThrottled, number_of(cpu, "throttled_time "), 1);
  say_if_known(say, UsageKind::kCpu, leading_number(cpu_used_.read()), 1);
  say_if_known(say, UsageKind::kMemory, leading_number(memory_.read()), 1);
  std::optional<std::uint64_t> least;
  for (const SystemFile& file : limits_)
    if (const auto limit = leading_number(file.read())) least = std::min(limit, least ? least : limit);
  if (!least) least = number_of(memory_stat_.read(), "hierarchical_memory_limit ");
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;  // version 1 says it by a large number
  if (least && *least < kNoLimit) say(UsageKind::kMemoryLimit, times(*least, 1));
  say_pressures(say, pressure_);
}

std::optional<ThreadTimes> thread_times(std::string_view schedstat) {
  ThreadTimes of;
  std::size_t at = 0;
  for (std::int64_t* field : {&of.cpu, &of.wait, &of.switches}) {
    const auto number = at < schedstat.size() ? leading_number(schedstat.substr(at)) : std::nullopt;
    if (!number) return std::nullopt;
    *field = times(*number, 1);
    at = schedstat.find(' ', at);
    if (at != schedstat.npos) ++at;
  }
  return of;
}

ProcessUsage::ProcessUsage(const HeldProcess& process) : stat_(process.file("stat")), io_(process.file("io")) {
  clockid_t clock = 0;
  if (clock_getcpuclockid(process.number(), &clock) == 0) clock_ = clock;
}

bool ProcessUsage::read(const SayUsage& say) {
  timespec used{};
  const bool has_used = clock_ && clock_gettime(*clock_, &used) == 0;
  // The file is this process's alone: what it says now means that the number was its own a moment ago.
  const ProcessStat stat{std::string(stat_.read())};
  if (stat.empty()) return false;
  if (has_used) {
    say(UsageKind::kCpu, std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec);
  } else {
    const auto user = stat.number(ProcessStat::kUserTicks);
    const auto system = stat.number(ProcessStat::kSystemTicks);
    if (user && system && *user <= kMost && *system <= kMost) say(UsageKind::kCpu, times(*user + *system, tick_ns()));
  }
  say_if_known(say, UsageKind::kFaults, stat.number(ProcessStat::kMinorFaults), 1);
  say_if_known(say, UsageKind::kMajorFaults, stat.number(ProcessStat::kMajorFaults), 1);
  const bool is_gone = stat.is_gone() && stat.number(ProcessStat::kThreads).value_or(0) <= 1;
  threads_ = is_gone ? 0 : stat.number(ProcessStat::kThreads).value_or(0);
  say(UsageKind::kThreads, times(threads_, 1));
  say(UsageKind::kMemory, is_gone ? 0 : times(stat.number(ProcessStat::kResidentPages).value_or(0), page_size()));
  if (is_gone) return false;
  const std::string_view io = io_.read();
  say_if_known(say, UsageKind::kRead, number_of(io, "rchar: "), 1);
  say_if_known(say, UsageKind::kWritten, number_of(io, "wchar: "), 1);
  say_if_known(say, UsageKind::kDiskRead, number_of(io, "read_bytes: "), 1);
  say_if_known(say, UsageKind::kDiskWritten, number_of(io, "write_bytes: "), 1);
  return true;
}

}  // namespace karst::kernel
