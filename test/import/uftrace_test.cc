// uftrace's directories, of planted files: names, sessions, records that are damaged, names that lead elsewhere.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/descriptor.h"
#include "import/uftrace_files.h"
#include "test/import/imported.h"

namespace karst::importing {
namespace {

enum : std::uint64_t { kEntry = 0, kExit = 1, kLost = 2, kMore = 4 };

class Directory {
 public:
  Directory() : path_(std::filesystem::temp_directory_path() / ("karst-uftrace-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path_);
    std::string info("Ftrace!\0\x04\0\0\0\x28\0\x01\x02\x63\x03", 18);
    info.resize(40);
    write("info", info);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  Directory& write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return *this;
  }
  const std::filesystem::path& path() const { return path_; }
  Imported imported() const {
    const Descriptor directory(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // The importer gets text elsewhere: here the number of a descriptor.
    static int number;
    number = directory.get();
    return {[](std::string_view) { return import_uftrace(number); }, ""};
  }

 private:
  std::filesystem::path path_;
};

std::string record(std::uint64_t ns, std::uint64_t kind, std::uint64_t address, std::uint64_t magic = 5) {
  const std::uint64_t words[2] = {ns, kind | magic << 3U | address << 16U};
  std::string bytes(sizeof words, '\0');
  std::memcpy(bytes.data(), words, sizeof words);
  return bytes;
}

constexpr const char* kTasks =
    "SESS timestamp=1.000000000 pid=7 sid=aa exename=\"/bin/my program\"\n"
    "TASK timestamp=1.000000001 tid=7 pid=7\nTASK timestamp=1.000000002 tid=8 pid=7\n";
constexpr const char* kMap =
    "1000-3000 r-xp 00000000 00:00 0    /bin/my program build-id:abcd\n"
    "8000-9000 r-xp 00000000 00:00 0    /lib/other.so\n";
constexpr const char* kNames =
    "# path name: /bin/my program\n0000000000000100 T main\n0000000000000200 t _Z3addii\n"
    "0000000000000300 ? __sym_end\n";

Directory& plain(Directory& directory) {
  return directory.write("task.txt", kTasks).write("sid-aa.map", kMap).write("my program.sym", kNames);
}

TEST(ImportUftrace, NamesCallsByTheSessionsSymbols) {
  Directory directory;
  plain(directory).write("7.dat", record(10, kEntry, 0x1100) + record(12, kEntry, 0x1210) + record(15, kExit, 0x1210) +
                                      record(16, kEntry, 0x1350) + record(17, kExit, 0x1350) +
                                      record(18, kEntry, 0x8010) + record(19, kExit, 0x8010) +
                                      record(19, kEntry, 0xffff00) + record(19, kExit, 0xffff00) +
                                      record(20, kExit, 0x1100));
  directory.write("8.dat", record(11, kEntry, 0x1200));
  const Imported imported = directory.imported();
  EXPECT_EQ(imported.trees(),
            (std::vector<std::string>{"7/7: main10(add(int, int)3 my program+0x3501 other.so+0x101 0xffff000)",
                                      "7/8: add(int, int)~"}));
  EXPECT_EQ(imported.trace().processes()[0].name, "my program");
}

TEST(ImportUftrace, ExecChangesWhatLiesAtAnAddress) {
  Directory directory;
  plain(directory).write("task.txt", std::string(kTasks) +
                                         "FORK timestamp=2.0 pid=9 ppid=7\n"
                                         "SESS timestamp=0.000000100 pid=7 sid=bb exename=\"/bin/b\"\n");
  directory.write("sid-bb.map", "1000-3000 r-xp 00000000 00:00 0 /bin/b\n")
      .write("b.sym", "0000000000000100 T other\n");
  const std::string calls = record(150, kEntry, 0x1100) + record(160, kExit, 0x1100) +
                            record(1'000'000'005, kEntry, 0x1100) + record(1'000'000'006, kExit, 0x1100);
  directory.write("7.dat", calls).write("9.dat", calls);
  EXPECT_EQ(directory.imported().trees(), (std::vector<std::string>{"7/7: other10 main1", "9/9: other10 main1"}));
}

TEST(ImportUftrace, DamagedRecordsEndTheirThread) {
  Directory directory;
  const std::string call = record(10, kEntry, 0x1100) + record(11, kExit, 0x1100);
  plain(directory)
      .write("7.dat", call + record(12, kLost, 0) + record(13, kEntry, 0, 3) + call)
      .write("8.dat", call + "x");
  const Imported imported = directory.imported();
  EXPECT_EQ(imported.trees(), (std::vector<std::string>{"7/7: main1", "7/8: main1"}));
  EXPECT_EQ(imported.summary.left_out,
            (std::map<std::string, std::uint64_t>{{"places where uftrace lost records", 1},
                                                  {"records that are not whole", 1},
                                                  {"threads whose records are damaged from some place on", 1}}));
  directory.write("7.dat", call + record(12, kEntry | kMore, 0x1100) + "argument" + call);
  EXPECT_EQ(directory.imported().trees()[0], "7/7: main1 main~");
}

TEST(ImportUftrace, NothingOutsideOfTheDirectoryIsRead) {
  Directory directory;
  plain(directory).write("7.dat", record(10, kEntry, 0x1100) + record(11, kExit, 0x1100));
  directory.write("task.txt",
                  "SESS timestamp=1.0 pid=7 sid=/../../etc exename=\"x\"\nTASK timestamp=1.0 tid=7 pid=7\n");
  EXPECT_EQ(directory.imported().trees(), std::vector<std::string>{"7/7: 0x11001"});
  const Descriptor opened(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::filesystem::create_symlink("/etc/passwd", directory.path() / "link.sym");
  for (const char* name : {"link.sym", "/etc/passwd", "../x", "..", ".", ""})
    EXPECT_FALSE(read_member(opened.get(), name, 1'000'000)) << name;
}

TEST(ImportUftrace, WhatIsNoneIsAnError) {
  Directory directory;
  EXPECT_EQ(directory.imported().error, "its file 'task.txt' is missing");
  directory.write("task.txt", kTasks);
  EXPECT_EQ(directory.imported().error,
            "there are no calls and no samples in it; left out: 2 threads whose records are not there");
  directory.write("info", "Ftrace!");
  EXPECT_EQ(directory.imported().error, "it is no directory of uftrace's: its file 'info' is missing or damaged");
  directory.write("info", std::string("Ftrace!\0", 8) + std::string(32, '\x05'));
  EXPECT_NE(directory.imported().error.find("another version of uftrace"), std::string::npos);
}

}  // namespace
}  // namespace karst::importing
