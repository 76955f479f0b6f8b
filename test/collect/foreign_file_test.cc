// Files that others name: what is no regular file is never opened.
#include "collect/launch/foreign_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace karst::collect {
namespace {

class ForeignFile : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(directory_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const char* name) const { return directory_ + "/" + name; }

  std::string directory_ = testing::TempDir() + "karst-foreign-XXXXXX";
};

TEST_F(ForeignFile, ARegularOneIsOpenedToBeRead) {
  const std::string file = path("file");
  const Descriptor made(open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_EQ(write(made.get(), "x", 1), 1);
  const Descriptor opened = open_regular_file(file);
  char read_back = 0;
  EXPECT_EQ(read(opened.get(), &read_back, 1), 1);
  EXPECT_EQ(read_back, 'x');
  EXPECT_FALSE(open_memfd(file, O_RDWR));
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(open_regular_file(path("none")));
  EXPECT_EQ(errno, ENOENT);
}

// To open it would wait for a writer, or be a reader to one.
TEST_F(ForeignFile, AFifoIsNotOpened) {
  const std::string fifo = path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(open_regular_file(fifo));
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(open_memfd(fifo, O_RDWR));
}

TEST_F(ForeignFile, ADeviceIsNotOpened) {
  EXPECT_FALSE(open_regular_file("/dev/null"));
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(ForeignFile, AMemfdIsFoundByTheLinkOfItsDescriptor) {
  const Descriptor memfd(memfd_create("karst-arena", MFD_CLOEXEC));
  ASSERT_TRUE(memfd);
  EXPECT_TRUE(open_memfd("/proc/self/fd/" + std::to_string(memfd.get()), O_RDWR));
  const Descriptor large(memfd_create("karst-arena", MFD_CLOEXEC | MFD_HUGETLB));
  if (large) {
    EXPECT_FALSE(open_memfd("/proc/self/fd/" + std::to_string(large.get()), O_RDWR));
  }
}

}  // namespace
}  // namespace karst::collect
