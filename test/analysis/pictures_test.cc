// Pictures of frames: put together from notes that are whole, torn or hostile; and what names say once.
#include "analysis/pictures.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "analysis/program_facts.h"
#include "format/note.h"
#include "format/picture.h"

namespace karst {
namespace {

using analysis::Picture;
using format::PictureHead;

class Pictures : public testing::Test {
 protected:
  void note(const PictureHead& head, const std::string& blocks, std::uint32_t name = 7) {
    std::string bytes(sizeof head, '\0');
    std::memcpy(bytes.data(), &head, sizeof head);
    raw(bytes + blocks, name);
  }
  void raw(std::string bytes, std::uint32_t name = 7) {
    reader::Note made;
    made.ticks = ++now_;
    made.name = name;
    made.kind = static_cast<std::uint32_t>(bytes.size() > 8 && bytes[8] != 0 ? format::NoteKind::kPicturePart
                                                                             : format::NoteKind::kPicture);
    made.bytes = calls_.note_bytes.size();
    made.size = static_cast<std::uint32_t>(bytes.size());
    calls_.note_bytes.insert(calls_.note_bytes.end(), bytes.begin(), bytes.end());
    calls_.notes.push_back(made);
  }
  std::vector<Picture> found() { return analysis::pictures_in(calls_); }

  // Of 128 times 128 pixels: 8192 bytes in five parts.
  static constexpr PictureHead kLarge{1, 128, 128, 0, 5, 0};
  static std::string part(unsigned number) {
    const std::size_t size = number < 4 ? format::kPictureBytesInNote : 8192 - 4 * format::kPictureBytesInNote;
    return std::string(size, static_cast<char>('a' + number));
  }

  reader::Calls calls_;
  std::uint64_t now_ = 0;
};

TEST_F(Pictures, ArePutTogetherOfTheirParts) {
  PictureHead head = kLarge;
  PictureHead other = kLarge;
  other.number = 2;
  other.ago = 3;
  for (unsigned i = 0; i < 5; ++i) {
    head.part = static_cast<std::uint8_t>(i);
    note(head, part(i));
    // A signal handler's lies in between.
    if (i != 2) continue;
    for (unsigned j = 0; j < 5; ++j) {
      other.part = static_cast<std::uint8_t>(j);
      note(other, part(4 - j < 4 ? 0 : 4), 8);
    }
  }
  const std::vector<Picture> pictures = found();
  ASSERT_EQ(pictures.size(), 2U);
  EXPECT_EQ(pictures[0].name, 8U);
  EXPECT_EQ(pictures[0].ago, 3U);
  EXPECT_EQ(pictures[1].name, 7U);
  EXPECT_EQ(pictures[1].ticks, 1U);
  EXPECT_EQ(pictures[1].blocks, part(0) + part(1) + part(2) + part(3) + part(4));
}

TEST_F(Pictures, WithoutAPartAreNone) {
  for (unsigned missing = 0; missing < 5; ++missing) {
    for (unsigned i = 0; i < 5; ++i) {
      PictureHead head = kLarge;
      head.number = 10 + missing;
      head.part = static_cast<std::uint8_t>(i);
      if (i != missing) note(head, part(i));
    }
  }
  EXPECT_TRUE(found().empty());
}

TEST_F(Pictures, ZerosThatWereNotKeptAreThereAgain) {
  note({1, 8, 4, 0, 1, 0}, "abc");
  ASSERT_EQ(found().size(), 1U);
  EXPECT_EQ(found()[0].blocks, std::string("abc") + std::string(13, '\0'));
}

TEST_F(Pictures, OfHostileBytesNeverAreLargerThanTheyMayBe) {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    PictureHead head{static_cast<std::uint32_t>(random() % 4),
                     static_cast<std::uint16_t>(random() % 200 * (random() % 2 != 0 ? 4 : 1)),
                     static_cast<std::uint16_t>(random() % 200),
                     static_cast<std::uint8_t>(random() % 7),
                     static_cast<std::uint8_t>(random() % 7),
                     static_cast<std::uint16_t>(random())};
    if (random() % 4 == 0) head = {head.number, 8, 8, 0, 1, 0};
    note(head, std::string(random() % 2000, static_cast<char>(random())));
    raw(std::string(random() % 14, static_cast<char>(random())));
  }
  const std::vector<Picture> pictures = found();
  EXPECT_GT(pictures.size(), 100U);
  for (const Picture& picture : pictures) {
    ASSERT_EQ(picture.blocks.size(), picture.width * picture.height / 2);
    ASSERT_LE(picture.width * picture.height, format::kMostPicturePixels);
    ASSERT_EQ(analysis::decompressed(picture).size(), picture.width * picture.height * 3);
  }
}

TEST_F(Pictures, AreOfTheFrameThatHasNotEnded) {
  const std::vector<analysis::RequestWork> frames{{1, {0, 10}}, {2, {10, 20}}, {3, {25, 30}}};
  const auto shown = [&](std::uint64_t ticks, std::uint32_t ago) {
    return analysis::frame_shown({ticks, 7, ago, 4, 4, {}}, frames);
  };
  EXPECT_EQ(shown(5, 0), 1U);
  EXPECT_EQ(shown(15, 0), 2U);
  EXPECT_EQ(shown(15, 1), 1U);
  EXPECT_EQ(shown(22, 0), 3U);
  EXPECT_EQ(shown(31, 0), 0U);
  EXPECT_EQ(shown(31, 1), 3U);
  EXPECT_EQ(shown(31, 4), 0U);
}

// Two colours of a block and what lies between, by the format's own words: 5, 6 and 5 bits.
TEST_F(Pictures, HaveFourColoursABlock) {
  Picture picture{0, 0, 0, 4, 4, std::string("\xff\xff\x00\x00\xe4\xe4\xe4\xe4", 8)};
  const std::string pixels = analysis::decompressed(picture);
  const int wanted[] = {255, 0, 170, 85};
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(static_cast<unsigned char>(pixels[i * 3 + c]), wanted[i % 4]) << i;
}

reader::Function named(const char* name, const char* values) {
  reader::Function made;
  made.id = 1;
  made.name = name;
  made.note = true;
  made.values = values;
  return made;
}

TEST(ProgramFacts, AreWhatWasSaidLast) {
  reader::Process process;
  process.functions = {named("version 1", "app info:"), named("version 1", "app info:"),
                       named("load", "plot:step - ms"), named("load", "plot:line #ff8000 %"),
                       named("a", "group of 3"),        named("b", "group of 3"),
                       named("zone", "#0080ff"),        named("plain", "")};
  EXPECT_EQ(analysis::app_info(process), (std::vector<std::string_view>{"version 1"}));
  const auto looks = analysis::plot_looks(process);
  ASSERT_EQ(looks.size(), 1U);
  EXPECT_TRUE(looks.at("load").line);
  EXPECT_EQ(looks.at("load").color, 0xff8000U);
  EXPECT_EQ(looks.at("load").unit, "%");
  EXPECT_EQ(analysis::thread_groups(process), (std::map<std::uint32_t, std::string_view>{{3, "b"}}));
  EXPECT_EQ(analysis::color_of(process.functions[6]), 0x80ffU);
}

TEST(ProgramFacts, OfHostileTextsAreNone) {
  reader::Process process;
  for (const char* values : {"group of", "group of ", "group of x", "group of 99999999999", "group of -1", "group of3",
                             "app inf", "plot", "#12345", "#1234567", "#12345g", "#-12345", "#", "12345678"})
    process.functions.push_back(named("name", values));
  EXPECT_TRUE(analysis::thread_groups(process).empty());
  EXPECT_TRUE(analysis::app_info(process).empty());
  EXPECT_TRUE(analysis::plot_looks(process).empty());
  for (const reader::Function& name : process.functions) EXPECT_FALSE(analysis::color_of(name)) << name.values;
  // A function's values are none of a name's.
  reader::Function function = named("f", "#123456");
  function.note = false;
  EXPECT_FALSE(analysis::color_of(function));
  process.functions = {named("p", "plot:"), named("q", "plot:line"), named("r", "plot:line #12 a b")};
  const auto looks = analysis::plot_looks(process);
  EXPECT_FALSE(looks.at("p").line);
  EXPECT_TRUE(looks.at("q").line);
  EXPECT_FALSE(looks.at("r").color);
  EXPECT_EQ(looks.at("r").unit, "a b");
}

}  // namespace
}  // namespace karst
