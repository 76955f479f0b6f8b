#include "symbols/demangle.h"

#include <gtest/gtest.h>

#include <string>

#include "fixture.h"

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

TEST(Demangle, WritesTheStandardsShortNamesAsNmAndGdbDo) {
  // The encoding has abbreviations of its own for these types, which c++filt alone writes out.
  EXPECT_EQ(demangle("_ZNSolsEi"), "std::ostream::operator<<(int)");
  EXPECT_EQ(demangle("_Z1fRSs"), "f(std::string&)");
  EXPECT_EQ(demangle("_Z1fRSiRSd"), "f(std::istream&, std::iostream&)");
  EXPECT_EQ(test::output_of("c++filt _ZNSolsEi"),
            "std::basic_ostream<char, std::char_traits<char> >::operator<<(int)\n");
  // Constructors are written out by all: their name is the class's own.
  EXPECT_EQ(demangle("_ZNSoC1Ev"), "std::basic_ostream<char, std::char_traits<char> >::basic_ostream()");
  EXPECT_EQ(test::output_of("c++filt _ZNSoC1Ev"), demangle("_ZNSoC1Ev") + "\n");
  // What gcc compiles today is encoded without them.
  EXPECT_EQ(demangle("_Z1fRNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
            "f(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >&)");
}

TEST(Demangle, KeepsCloneSuffixes) {
  EXPECT_EQ(demangle("_Z1fi.part.0"), "f(int) [clone .part.0]");
  EXPECT_EQ(demangle("_Z1fIiEiT_.constprop.0.cold"), "f<int>(int) [clone .constprop.0] [clone .cold]");
}

TEST(Demangle, ShowsRustsPathsWithoutHash) {
  EXPECT_EQ(demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
  EXPECT_EQ(
      demangle("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE"),
      "<Test + 'static as foo::Bar<Test>>::bar");
  EXPECT_EQ(demangle("_RNvC6_123foo3bar"), "123foo::bar");
  EXPECT_EQ(demangle("_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3new"), "<std::path::PathBuf>::new");
  EXPECT_EQ(
      demangle("_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_3std"),
      "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>");
  EXPECT_EQ(demangle("_ZN3foo3barE"), "foo::bar") << "C++";
  EXPECT_EQ(demangle("_ZN3foo4h17hEi"), "foo::h17h(int)") << "C++ too";
  EXPECT_EQ(demangle("_R"), "_R");
}

TEST(Demangle, BoundsHostileNamesOfRust) {
  // Each tuple holds the one before twice, by reference: 2^60 parts.
  std::string doubled = "_RIC1f";
  std::size_t last = doubled.size() - 2;
  doubled += "TuuE";
  for (int i = 0; i < 60; ++i) {
    std::string reference = "B";
    for (std::size_t value = last - 1;; value /= 62) {
      reference.insert(1, 1, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[value % 62]);
      if (value < 62) break;
    }
    last = doubled.size() - 2;
    doubled += "T" + reference + "_" + reference + "_E";
  }
  doubled += "E";
  EXPECT_LT(demangle(doubled.c_str()).size(), std::size_t{2} << 20);
  const std::string deep = "_RIC1f" + std::string(10'000, 'R') + "uE";
  EXPECT_LT(demangle(deep.c_str()).size(), std::size_t{2} << 20);
}

TEST(Demangle, ShowsAdasNamesAsWrittenAndOnlyWhenTheyAreAdas) {
  EXPECT_EQ(demangle("pkg__proc", Language::kAda), "pkg.proc");
  EXPECT_EQ(demangle("hello__shapes__Oadd.1", Language::kAda), "hello.shapes.\"+\"");
  EXPECT_EQ(demangle("_ada_main", Language::kAda), "main");
  EXPECT_EQ(demangle("pkg__proc"), "pkg__proc") << "a C function may be called so";
  EXPECT_EQ(demangle("__gnat_initialize", Language::kAda), "__gnat_initialize");
  EXPECT_EQ(demangle("main", Language::kAda), "main");
  EXPECT_EQ(demangle("_Z1fi", Language::kAda), "f(int)") << "imported";
  EXPECT_EQ(demangle("", Language::kAda), "");
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
