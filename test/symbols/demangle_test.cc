#include "symbols/demangle.h"

#include <gtest/gtest.h>

#include <string>

namespace karst::symbols {
namespace {

TEST(Demangle, LeavesOutTheReturnTypeOfTemplatesHoweverItIsWritten) {
  EXPECT_EQ(demangle("_Z1fIiEiT_"), "f<int>(int)");
  EXPECT_EQ(demangle("_Z1fIiEDaT_"), "f<int>(int)");
  EXPECT_EQ(demangle("_ZNK1A1dIiEEDcT_"), "A::d<int>(int) const");
  EXPECT_EQ(demangle("_Z2dtIiEDTplfp_Li1EET_"), "dt<int>(int)");
  EXPECT_EQ(demangle("_Z2fpIiEPFvcET_"), "fp<int>(int)");
  EXPECT_EQ(demangle("_Z3arrIiERA3_iT_"), "arr<int>(int)");
  EXPECT_EQ(demangle("_Z2mpI1AEMT_iPS1_"), "mp<A>(A*)");
  EXPECT_EQ(demangle("_ZlsIiER5ShapeS1_T_"), "operator<< <int>(Shape&, int)");
}

TEST(Demangle, KeepsTypesThatBelongToTheName) {
  EXPECT_EQ(demangle("_ZN1AcviEv"), "A::operator int()");
  EXPECT_EQ(demangle("_ZN1AcvT_IdEEv"), "A::operator double<double>()");
  EXPECT_EQ(demangle("_ZN1AclEi"), "A::operator()(int)");
  EXPECT_EQ(demangle("_ZN1AnwEm"), "A::operator new(unsigned long)");
  EXPECT_EQ(demangle("_Z4callIXadL_Z1zvEEEvv"), "call<&(z())>()");
  EXPECT_EQ(demangle("_ZThn16_N7Derived4overEi"), "non-virtual thunk to Derived::over(int)");
}

TEST(Demangle, NamesLambdasAndLocalClassesByTheirFunctionWithoutItsReturnType) {
  EXPECT_EQ(demangle("_ZZ4mainENKUliE_clEi"), "main::{lambda(int)#1}::operator()(int) const");
  EXPECT_EQ(demangle("_ZZ4mainENKUlT_E0_clIiEEDaS_"), "main::{lambda(auto:1)#2}::operator()<int>(int) const");
  EXPECT_EQ(demangle("_ZZ1fIiEDaT_ENKUliE_clEi"), "f<int>(int)::{lambda(int)#1}::operator()(int) const");
  EXPECT_EQ(demangle("_ZZ1fIiEDaT_EN1LclEi"), "f<int>(int)::L::operator()(int)");
}

TEST(Demangle, KeepsCloneSuffixes) {
  EXPECT_EQ(demangle("_Z1fi.part.0"), "f(int) [clone .part.0]");
  EXPECT_EQ(demangle("_Z1fIiEiT_.constprop.0.cold"), "f<int>(int) [clone .constprop.0] [clone .cold]");
}

TEST(Demangle, LeavesOtherNamesAsTheyAre) {
  for (const char* name : {"", "main", "f.part.0", "_", "_Z", "_start", "_Zgarbage", "_ZN", "_Z1f\xff", "i"}) {
    EXPECT_EQ(demangle(name), name);
  }
}

TEST(Demangle, ReadsNamesAsLongAsTemplatesMakeThem) {
  std::string part(1500, 'a');
  EXPECT_EQ(demangle(("_ZN1500" + part + "1fEi").c_str()), part + "::f(int)");
}

TEST(Demangle, BoundsTheTextOfHostileNames) {
  std::string pairs = "_Z1fSt4pairIiiE";
  for (char digit : std::string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    std::string last = std::string("S") + digit + "_";
    pairs += "S_I" + last + last + "E";  // a pair of the pair before: 2^36 of them at the end
  }
  EXPECT_EQ(demangle(pairs.c_str()), pairs);
}

TEST(Demangle, BoundsNestingInHostileNames) {
  for (std::size_t depth : {16'000, 1'000'000}) {
    std::string deep = "_Z1f" + std::string(depth, 'P') + "i";
    EXPECT_EQ(demangle(deep.c_str()), deep);
  }
  std::string templates = "_Z";
  for (int i = 0; i < 100'000; ++i) templates += "1fI";
  EXPECT_EQ(demangle(templates.c_str()), templates);
}

}  // namespace
}  // namespace karst::symbols
