// What files of /proc and /sys say, as kernels write them and as none would: made up below a directory of the test's.
#include "kernel/usage_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>

namespace karst::test {
namespace {

namespace fs = std::filesystem;
using format::UsageKind;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

class UsageFiles : public testing::Test {
 protected:
  UsageFiles() {
    std::string name = (fs::temp_directory_path() / "karst-usage-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~UsageFiles() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    const fs::path path = root_ + file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  template <typename Of>
  static std::map<UsageKind, std::int64_t> said(const Of& of) {
    std::map<UsageKind, std::int64_t> values;
    of.read([&](UsageKind kind, std::int64_t value) { values[kind] = value; });
    return values;
  }
  std::map<UsageKind, std::int64_t> machine() const { return said(kernel::MachineUsage(root_)); }
  std::map<UsageKind, std::int64_t> group(const std::string& memberships) const {
    return said(kernel::GroupUsage(memberships, root_));
  }

  std::string root_;
};

TEST_F(UsageFiles, OfAMachineAllIsReadThatThereIs) {
  const std::int64_t tick = 1'000'000'000 / sysconf(_SC_CLK_TCK);
  write("/proc/stat", "cpu  10 20 30 4000 500 6 7 8 9 9\ncpu0 1 2 3\nintr 9 9\nctxt 12345\nbtime 1\n");
  write("/proc/meminfo", "MemTotal:    1000 kB\nMemFree:  1 kB\nMemAvailable:   400 kB\n");
  write("/proc/pressure/cpu", "some avg10=0.24 avg60=0.31 avg300=0.57 total=77\nfull avg10=0.00 total=0\n");
  write("/proc/pressure/memory", "some avg10=0.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n");
  write("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "1000000\n");
  write("/sys/devices/system/cpu/cpufreq/policy1/scaling_cur_freq", "3000000\n");
  write("/sys/class/thermal/thermal_zone0/type", "acpitz\n");
  write("/sys/class/thermal/thermal_zone0/temp", "99000\n");
  write("/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
  write("/sys/class/thermal/thermal_zone1/temp", "45500\n");
  const std::map<UsageKind, std::int64_t> all = {{UsageKind::kCpu, (10 + 20 + 30 + 6 + 7) * tick},
                                                 {UsageKind::kStolen, 8 * tick},
                                                 {UsageKind::kSwitches, 12345},
                                                 {UsageKind::kMemory, 600 * 1024},
                                                 {UsageKind::kMemoryLimit, 1000 * 1024},
                                                 {UsageKind::kCpuPressure, 77'000},
                                                 {UsageKind::kMemoryPressure, 5000},
                                                 {UsageKind::kMemoryPressureFull, 3000},
                                                 {UsageKind::kFrequency, 2'000'000'000},
                                                 {UsageKind::kTemperature, 45'500}};
  EXPECT_EQ(machine(), all);
}

TEST_F(UsageFiles, WhereNothingCanBeReadNothingIsSaid) { EXPECT_TRUE(machine().empty()); }

TEST_F(UsageFiles, NumbersThatNoMachineHasAreCutOffOrLeftOut) {
  write("/proc/stat", "cpu  18446744073709551615 18446744073709551615 99999999999999999999999 1 2 3 4 5\nctxt x\n");
  write("/proc/meminfo", "MemTotal: 18446744073709551615 kB\nMemAvailable: 99999999999999999999 kB\n");
  write("/proc/pressure/io", "some total=99999999999999999999\nfull total=-5\n");
  write("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "18446744073709551615\n");
  const auto all = machine();
  EXPECT_EQ(all.at(UsageKind::kCpu), kMost);
  EXPECT_EQ(all.at(UsageKind::kMemoryLimit), kMost);
  EXPECT_EQ(all.at(UsageKind::kIoPressure), kMost);
  EXPECT_FALSE(all.contains(UsageKind::kIoPressureFull));
  EXPECT_FALSE(all.contains(UsageKind::kSwitches));
  EXPECT_FALSE(all.contains(UsageKind::kFrequency));
  for (const char* const odd :
       {"", "cpu", "cpu ", "cpu  1 2", "cpu\n1 2 3 4 5 6 7 8", "intr 5", "cpu  a b c d e f g h"}) {
    write("/proc/stat", odd);
    EXPECT_FALSE(machine().contains(UsageKind::kCpu)) << odd;
  }
}

TEST_F(UsageFiles, AGroupOfVersion2HasTheLeastLimitOfThoseThatItIsIn) {
  const std::string mount = "/sys/fs/cgroup";
  for (const std::string group : {"/a", "/a/b"}) write(mount + group + "/cgroup.type", "domain\n");
  write(mount + "/a/memory.max", "5000\n");
  write(mount + "/a/b/memory.max", "max\n");
  write(mount + "/a/b/memory.current", "4000\n");
  write(mount + "/a/b/cpu.stat", "usage_usec 12\nuser_usec 7\nnr_periods 0\nnr_throttled 1\nthrottled_usec 3\n");
  write(mount + "/a/b/io.pressure", "some avg10=0.00 total=9\nfull avg10=0.00 total=8\n");
  const auto all = group("0::/a/b\n");
  EXPECT_EQ(all.at(UsageKind::kMemory), 4000);
  EXPECT_EQ(all.at(UsageKind::kMemoryLimit), 5000);
  EXPECT_EQ(all.at(UsageKind::kCpu), 12'000);
  EXPECT_EQ(all.at(UsageKind::kThrottled), 3000);
  EXPECT_EQ(all.at(UsageKind::kIoPressureFull), 8000);
  EXPECT_TRUE(group("0::/\n").empty()) << "the root is the whole machine";
}

TEST_F(UsageFiles, AGroupOfVersion1IsReadByItsControllers) {
  write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "4000\n");
  write("/sys/fs/cgroup/memory/a/memory.stat", "cache 5\nhierarchical_memory_limit 9223372036854771712\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat", "nr_periods 5\nthrottled_time 77\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpuacct.usage", "123\n");
  auto all = group("9:name=systemd:/a\n8:memory:/a\n3:cpu,cpuacct:/a\n0::/\n");
  EXPECT_EQ(all.at(UsageKind::kMemory), 4000);
  EXPECT_FALSE(all.contains(UsageKind::kMemoryLimit)) << "it has none";
  EXPECT_EQ(all.at(UsageKind::kThrottled), 77);
  EXPECT_EQ(all.at(UsageKind::kCpu), 123);
  write("/sys/fs/cgroup/memory/a/memory.stat", "cache 5\nhierarchical_memory_limit 8000\n");
  EXPECT_EQ(group("8:memory:/a").at(UsageKind::kMemoryLimit), 8000);
}

TEST_F(UsageFiles, NoGroupLeadsOutOfItsPlace) {
  write("/secret/memory.usage_in_bytes", "4000\n");
  write("/sys/fs/cgroup/memory/x", "");
  write("/sys/fs/cgroup/cgroup.controllers", "");
  for (const char* const odd : {"8:memory:/../../../../secret\n", "0::/..\n", "0::/../../secret", "8:memory:secret",
                                ":", "::", "8:memory", "\n\n\n", "8:memory:/a:b:c\n", "0::"})
    EXPECT_TRUE(group(odd).empty()) << odd;
}

TEST(UsageOfThreads, SchedstatIsThreeNumbers) {
  const auto times = kernel::thread_times("2841917 1070472 12\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->cpu, 2841917);
  EXPECT_EQ(times->wait, 1070472);
  EXPECT_EQ(times->switches, 12);
  for (const char* const odd : {"", "1", "1 2", "1 2 ", "a b c", "1 x 3"})
    EXPECT_FALSE(kernel::thread_times(odd)) << odd;
  EXPECT_EQ(kernel::thread_times("99999999999999999999 0 0")->cpu, kMost);
}

}  // namespace
}  // namespace karst::test
