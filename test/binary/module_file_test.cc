// Which file a module's names come from: never another one than ran.
#include "binary/module_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>

#include "format/file_identity.h"
#include "symbols/resolve.h"
#include "test/symbols/fixture.h"

namespace karst::binary {
namespace {

using namespace symbols::test;
using format::FileIdentity;

std::string bytes_of(const FileIdentity& file) {
  return {reinterpret_cast<const char*>(&file), format::kFileIdentitySize};
}

class ModuleFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(fixture("dwarf5"), path_);
    struct stat status {};
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    identity_ = format::file_identity(status);
    module_.path = path_;
    module_.by_file = true;
    module_.file = bytes_of(identity_);
  }

  /// Empty: it has names.
  std::string refusal(ModuleFile file) const {
    symbols::ResolveOptions options;
    options.cache = symbols::Cache();
    const auto table = options.table(file);
    return table ? std::string() : table.error().message;
  }
  std::string refusal() const { return refusal(ModuleFile(module_)); }

  TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "app";
  FileIdentity identity_;
  reader::Module module_;
};

TEST_F(ModuleFileTest, WithoutABuildIdDeviceInodeSizeAndTimeMustBeTheSame) {
  EXPECT_EQ(refusal(), "");
  const std::pair<std::function<void(FileIdentity&)>, const char*> changes[] = {
      {[](FileIdentity& f) { ++f.inode; }, "it is another file"},
      {[](FileIdentity& f) { ++f.device; }, "it is another file"},
      {[](FileIdentity& f) { ++f.size; }, "it has another size"},
      {[](FileIdentity& f) { ++f.modified_ns; }, "it was written to"},
  };
  for (const auto& [change, said] : changes) {
    FileIdentity other = identity_;
    change(other);
    module_.file = bytes_of(other);
    EXPECT_NE(refusal().find(said), std::string::npos) << refusal();
  }
}

TEST_F(ModuleFileTest, WhatCouldNotBeToldGivesNoNames) {
  for (const std::string& bytes : {std::string(), std::string("short"), std::string(format::kFileIdentitySize, '\0')}) {
    module_.file = bytes;
    EXPECT_NE(refusal().find("could not be told"), std::string::npos) << refusal();
  }
}

TEST_F(ModuleFileTest, AnInodeAloneIsEnoughForAFileThatHasNotChangedSince) {
  module_.file = bytes_of({.inode = identity_.inode, .modified_ns = identity_.modified_ns});
  EXPECT_EQ(refusal(), "");
  module_.file = bytes_of({.inode = identity_.inode, .modified_ns = identity_.modified_ns - 1});
  EXPECT_NE(refusal(), "");
  module_.file = bytes_of({.inode = identity_.inode + 1, .modified_ns = identity_.modified_ns});
  EXPECT_NE(refusal(), "");
}

TEST_F(ModuleFileTest, TracesOfBeforeAreNotChecked) {
  module_.by_file = false;
  module_.file.clear();
  EXPECT_EQ(refusal(), "");
}

TEST_F(ModuleFileTest, AMappedFileStandsInForTheOneThatWasRemoved) {
  ModuleFile file(module_);
  file.mapped = std::make_shared<const Descriptor>(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  std::filesystem::remove(path_);
  EXPECT_EQ(refusal(file), "");
  std::filesystem::copy_file(fixture("optimised"), path_);
  EXPECT_EQ(refusal(file), "");
  file.mapped = nullptr;
  EXPECT_NE(refusal(file), "");
}

TEST_F(ModuleFileTest, NothingIsOpenedOfAnotherUsersProcess) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: there are no other users to name";
  reader::Process process;
  process.pid = static_cast<std::uint32_t>(getpid());
  process.executable = path_;  // as a hostile arena says: the link leads to this test
  module_.by_file = false;
  EXPECT_NE(LiveFiles(process, std::nullopt).of(module_).mapped, nullptr);
  EXPECT_EQ(LiveFiles(process, sandbox::Credentials::of_owner(65534, 65534)).of(module_).mapped, nullptr);
}

TEST_F(ModuleFileTest, ABuildIdThatTheArenaCutIsComparedAsFarAsItGoes) {
  const std::string whole(32, 'x');
  EXPECT_TRUE(ModuleFile(path_, whole.substr(0, 28)).admits(whole));
  EXPECT_FALSE(ModuleFile(path_, whole.substr(0, 20)).admits(whole));
  EXPECT_FALSE(ModuleFile(path_, std::string(28, 'y')).admits(whole));
}

}  // namespace
}  // namespace karst::binary
