#include "base/output_place.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/new_file.h"

namespace karst {
namespace {

namespace fs = std::filesystem;
using There = OutputPlace::There;

class OutputPlaceTest : public testing::Test {
 protected:
  OutputPlaceTest() : directory_(fs::path(testing::TempDir()) / ("karst_place_" + std::to_string(::getpid()))) {
    fs::create_directories(directory_ / "deep");
    std::ofstream(directory_ / "file") << "old";
  }
  ~OutputPlaceTest() override { fs::remove_all(directory_); }

  There there(const fs::path& path) const {
    const auto place = OutputPlace::find(path);
    EXPECT_TRUE(place) << path << ": " << (place ? "" : place.error().message);
    return place ? place->there() : There::kSpecial;
  }
  static std::string why_not(const fs::path& path) {
    const auto place = OutputPlace::find(path);
    return place ? "found" : place.error().message;
  }
  /// Of another user; only root can say so.
  void give_away(const fs::path& path) const { ASSERT_EQ(::lchown(path.c_str(), 65534, 65534), 0); }

  const fs::path directory_;
};

TEST_F(OutputPlaceTest, IsWhatThePathNames) {
  EXPECT_EQ(there(directory_ / "file"), There::kFile);
  EXPECT_EQ(there(directory_ / "new"), There::kNothing);
  EXPECT_EQ(there(directory_ / "deep"), There::kDirectory);
  EXPECT_EQ(there(directory_ / "deep/"), There::kDirectory);
  EXPECT_EQ(there(directory_ / "deep/.."), There::kDirectory);
  EXPECT_EQ(there(directory_ / "deep/../deep/.././file"), There::kFile);
  EXPECT_EQ(there("/"), There::kDirectory);
  EXPECT_EQ(there("."), There::kDirectory);
  EXPECT_EQ(there("/dev/null"), There::kSpecial);
  EXPECT_EQ(why_not(""), "its file name is empty");
  EXPECT_EQ(why_not(directory_ / "no/new"), "No such file or directory");
  EXPECT_EQ(why_not(directory_ / "new/"), "No such file or directory");
  EXPECT_EQ(why_not(directory_ / "file/new"), "Not a directory");
  EXPECT_EQ(why_not(directory_ / "file/"), "Not a directory");
}

TEST_F(OutputPlaceTest, FollowsOwnLinks) {
  fs::create_symlink("deep", directory_ / "way");
  fs::create_symlink("../file", directory_ / "deep/up");
  fs::create_symlink(directory_ / "deep/new", directory_ / "absolute");
  fs::create_symlink("round", directory_ / "round");
  const auto place = OutputPlace::find(directory_ / "way/up");
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(place->there(), There::kFile);
  EXPECT_EQ(place->name(), "file");
  EXPECT_TRUE(fs::equivalent(place->path(), directory_ / "file"));
  EXPECT_EQ(there(directory_ / "absolute"), There::kNothing);
  EXPECT_EQ(there(directory_ / "way"), There::kDirectory);
  EXPECT_EQ(why_not(directory_ / "round"), "Too many levels of symbolic links");
}

TEST_F(OutputPlaceTest, FollowsNoLinkThatOthersMayHaveMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: to have links of another user";
  fs::create_symlink("../file", directory_ / "deep/link");
  fs::create_symlink("..", directory_ / "deep/way");
  const auto refused = [this] {
    return why_not(directory_ / "deep/link").find("symbolic link") != std::string::npos &&
           why_not(directory_ / "deep/way/new").find("symbolic link") != std::string::npos;
  };
  EXPECT_FALSE(refused());
  ASSERT_EQ(::chmod((directory_ / "deep").c_str(), 0777), 0);
  EXPECT_TRUE(refused()) << "anybody may have moved them there";
  ASSERT_EQ(::chmod((directory_ / "deep").c_str(), 0775), 0);
  EXPECT_TRUE(refused());
  ASSERT_EQ(::chmod((directory_ / "deep").c_str(), 01777), 0);
  EXPECT_FALSE(refused());
  give_away(directory_ / "deep");
  EXPECT_TRUE(refused());
  ASSERT_EQ(::lchown((directory_ / "deep").c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod((directory_ / "deep").c_str(), 0755), 0);
  for (const char* link : {"deep/link", "deep/way"}) give_away(directory_ / link);
  EXPECT_TRUE(refused());
}

TEST_F(OutputPlaceTest, WritesToNoPipeOfOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: to have a pipe of another user";
  const fs::path pipe = directory_ / "deep/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  EXPECT_EQ(there(pipe), There::kSpecial);
  give_away(pipe);
  EXPECT_EQ(there(pipe), There::kSpecial) << "a directory that root alone writes to, as /dev/pts";
  ASSERT_EQ(::chmod((directory_ / "deep").c_str(), 01777), 0);
  EXPECT_NE(why_not(pipe).find("it is no file"), std::string::npos);
}

TEST_F(OutputPlaceTest, KnowsItsOwnDescriptors) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string end = std::to_string(ends[1]);
  for (const char* directory : {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"}) {
    const auto place = OutputPlace::find(directory + end);
    ASSERT_TRUE(place) << place.error().message;
    EXPECT_EQ(place->there(), There::kOpened);
    const auto opened = place->open();
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(::write(opened->get(), "x", 1), 1);
  }
  const Descriptor file(::open((directory_ / "file").c_str(), O_RDWR));
  const std::string opened = "/proc/self/fd/" + std::to_string(file.get());
  EXPECT_EQ(there(opened), There::kOpened);
  const auto named = OutputPlace::find(opened, OutputPlace::Opened::kByItsName);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->there(), There::kFile);
  EXPECT_EQ(named->name(), "file");
  fs::remove(directory_ / "file");
  EXPECT_FALSE(OutputPlace::find(opened, OutputPlace::Opened::kByItsName)) << "it has no name any more";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(OutputPlaceTest, IsTheSameWhateverIsPutIntoTheWay) {
  auto place = OutputPlace::find(directory_ / "deep/new");
  ASSERT_TRUE(place);
  fs::rename(directory_ / "deep", directory_ / "moved");
  fs::create_directory(directory_ / "other");
  fs::create_symlink("other", directory_ / "deep");
  auto made = NewFile::create(place->directory(), place->name());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->replace("new"), 0);
  EXPECT_TRUE(fs::exists(directory_ / "moved/new"));
  EXPECT_TRUE(fs::is_empty(directory_ / "other"));
}

TEST_F(OutputPlaceTest, ANewFileReplacesALinkAndFollowsNone) {
  const auto place = OutputPlace::find(directory_ / "deep/new");
  ASSERT_TRUE(place);
  fs::create_symlink("../file", directory_ / "deep/new");
  auto free = NewFile::create(place->directory(), "new");
  ASSERT_TRUE(free);
  EXPECT_EQ(free->take_free_name("new"), EEXIST);
  EXPECT_EQ(free->replace("new"), 0);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(directory_ / "deep/new")));
  EXPECT_EQ(fs::file_size(directory_ / "file"), 3U);
}

}  // namespace
}  // namespace karst
