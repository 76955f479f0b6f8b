#include "base/output.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace karst {
namespace {

namespace fs = std::filesystem;

class OutputTest : public testing::Test {
 protected:
  OutputTest() : directory_(fs::path(testing::TempDir()) / ("karst_output_" + std::to_string(::getpid()))) {
    fs::create_directory(directory_);
  }
  ~OutputTest() override { fs::remove_all(directory_); }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const fs::path directory_;
};

TEST_F(OutputTest, AFileHasItsNameOnlyWhenItIsWhole) {
  const fs::path path = directory_ / "out";
  auto output = Output::create(path);
  ASSERT_TRUE(output);
  std::string expected;
  for (int i = 0; i < 100'000; ++i) {
    output->append("line ");
    output->append('\n');
    expected += "line \n";
  }
  const std::string large(1 << 20, 'x');  // longer than the buffer
  output->append(large);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(output->size(), expected.size() + large.size());
  ASSERT_TRUE(output->finish());
  EXPECT_EQ(content(path), expected + large);
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputTest, WhatIsNotFinishedLeavesNothing) {
  std::ofstream(directory_ / "out") << "old";
  {
    auto output = Output::create(directory_ / "out");
    ASSERT_TRUE(output);
    output->append("new");
  }
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(content(directory_ / "out"), "old");
}

TEST_F(OutputTest, ReplacesAFileAndKeepsItsMode) {
  const fs::path path = directory_ / "out";
  std::ofstream(path) << "old";
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  auto output = Output::create(path);
  ASSERT_TRUE(output);
  output->append("new");
  ASSERT_TRUE(output->finish());
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OutputTest, WritesThroughASymbolicLink) {
  std::ofstream(directory_ / "real") << "old";
  fs::create_symlink("real", directory_ / "link");
  auto output = Output::create(directory_ / "link");
  ASSERT_TRUE(output);
  output->append("new");
  ASSERT_TRUE(output->finish());
  EXPECT_TRUE(fs::is_symlink(directory_ / "link"));
  EXPECT_EQ(content(directory_ / "real"), "new");
}

TEST_F(OutputTest, ADirectoryOrAMissingOneIsAnError) {
  const auto directory = Output::create(directory_);
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("is a directory"), std::string::npos) << directory.error().message;
  const auto missing = Output::create(directory_ / "no" / "out");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("No such file"), std::string::npos) << missing.error().message;
}

TEST_F(OutputTest, AFullDiskIsToldAtTheEndAndStopsTheWriting) {
  auto output = Output::create("/dev/full");
  ASSERT_TRUE(output);
  output->append(std::string(1 << 20, 'x'));
  EXPECT_TRUE(output->failed());
  output->append("more");
  const Status status = output->finish();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("/dev/full: No space left"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace karst
