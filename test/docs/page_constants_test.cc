// viewer/src/backend/protocol.ts against the headers that say the same in C++: the page has no number of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "reader/model.h"
#include "view/protocol.h"

namespace karst::test {
namespace {

const std::string kFile = std::string(KARST_SOURCE_DIR) + "/viewer/src/backend/protocol.ts";

std::string constants() {
  std::string text =
      "// Numbers that the page shares with view/protocol.h and reader/model.h. Made of them by docs_test, which "
      "fails\n"
      "// when they differ; KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this file "
      "anew.\n";
  const auto add = [&text](const char* name, const std::string& value, const char* meaning) {
    text += fmt::format("\n/** {} */\nexport const {} = {};\n", meaning, name, value);
  };
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  const auto hex = [](std::uint64_t value) { return fmt::format("{:#x}", value); };
  add("PROTOCOL_VERSION", number(view::kProtocolVersion), "Of all answers; the page refuses others.");
  add("TILES_MAGIC", hex(view::kTilesMagic), "First word of tiles.");
  add("MINIMAP_MAGIC", hex(view::kMinimapMagic), "First word of a minimap.");
  add("kNoParent", hex(reader::kNoParent), "In a column of parents: none.");
  add("kOpenBegin", number(reader::kCallOpenBegin), "Flag of a call: its begin is not known.");
  add("kOpenEnd", number(reader::kCallOpenEnd), "Flag of a call: its end is not known.");
  add("kUnwound", number(reader::kCallUnwound), "Flag of a call: an exception ended it.");
  add("kJumped", number(reader::kCallJumped), "Flag of a call: a longjmp ended it.");
  add("kTailCall", number(reader::kCallTail), "Flag of a call: a tail call ended it.");
  add("kResumed", number(reader::kCallResumed), "Flag of a call: it goes on, on a stack that came back.");
  add("kInherited", number(reader::kCallInherited), "Flag of a call: it was open when its process was forked.");
  add("kSummed", number(view::kSliceSummed), "Flag of a slice: it stands for several calls.");
  add("kLeft", number(reader::kCallLeft),
      "Both bits: a tail call's jump left the call; what that called is beside it.");
  add("kCut", number(reader::kCallCut), "Both bits: the call's function was switched off while it ran.");
  return text;
}

TEST(PageConstants, AreThoseOfTheHeaders) {
  if (std::getenv("KARST_RENEW") != nullptr) std::ofstream(kFile) << constants();
  std::ifstream file(kFile);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), constants());
}

}  // namespace
}  // namespace karst::test
