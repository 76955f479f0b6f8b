// The filter between compiler and assembler: gcc's tables in, Karst's sleds and their table out. The texts are what
// gcc 12 writes, shortened.
#include "toolchain/asm_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace karst::toolchain {
namespace {

std::string function_start(std::string_view name) {
  return "\t.type\t" + std::string(name) + ", @function\n" + std::string(name) + ":\n";
}

constexpr std::string_view kEntry =
    "1:\tcall\t*__fentry__@GOTPCREL(%rip)\n"
    "\t.section __mcount_loc, \"a\",@progbits\n"
    "\t.quad 1b\n"
    "\t.previous\n";
constexpr std::string_view kExit =
    "1:\n"
    "\t.byte\t0x0f, 0x1f, 0x44, 0x00, 0x00\n"
    "\t.section __return_loc, \"a\",@progbits\n"
    "\t.quad 1b\n"
    "\t.previous\n";

std::string aligned() { return "\t.p2align 1,0x90\n"; }
std::string entry_sled() { return aligned() + "1:\t.byte\t0x0f, 0x1f, 0x44, 0x00, 0x00\n"; }
std::string exit_sled() { return aligned() + "1:\n\t.byte\t0x0f, 0x1f, 0x44, 0x00, 0x00\n"; }

std::string record(char kind) {
  return std::string("\t.pushsection\tkarst_sleds,\"aR?\",@progbits\n\t.balign\t4\n\t.long\t1b - ., ") + kind +
         "\n\t.popsection\n";
}

std::string text(std::string_view s) { return std::string(s); }

std::size_t count(std::string_view where, std::string_view what) {
  std::size_t n = 0;
  for (auto at = where.find(what); at != std::string_view::npos; at = where.find(what, at + what.size())) ++n;
  return n;
}

/// The kind in the record of an exit that stands before `instructions`.
char kind_before(std::string_view instructions) {
  const std::string out =
      filter_assembly(function_start("f") + text(kEntry) + text(kExit) + std::string(instructions) + "\n");
  const auto at = out.rfind(".long\t1b - ., ");
  return at == std::string::npos ? '?' : out[at + 14];
}

TEST(AsmFilter, EntryBecomesASledAndARecord) {
  EXPECT_EQ(filter_assembly("\t.text\n" + function_start("f") + text(kEntry) + "\tpushq\t%rbp\n"),
            "\t.text\n" + function_start("f") + entry_sled() + record('0') + "\tpushq\t%rbp\n");
}

TEST(AsmFilter, EntryOfCodeThatIsNotPicBecomesTheSameSled) {
  const std::string in =
      function_start("f") + "1:\tcall\t__fentry__\n\t.section __mcount_loc, \"a\",@progbits\n\t.quad 1b\n\t.previous\n";
  EXPECT_EQ(filter_assembly(in), function_start("f") + entry_sled() + record('0'));
}

// Only the first of these lines was replaced: the program called whatever r10 held.
TEST(AsmFilter, EntryInTheLargeCodeModelIsReplacedWhole) {
  const std::string table = text(kEntry).substr(kEntry.find('\n') + 1);
  const std::string direct = "1:\tmovabsq\t$__fentry__, %r10\n\tcall\t*%r10\n";
  const std::string pic =
      "1:\tmovabsq\t$_GLOBAL_OFFSET_TABLE_-1b, %r11\n\tleaq\t1b(%rip), %r10\n\taddq\t%r11, %r10\n"
      "\tmovabsq\t$__fentry__@PLTOFF, %r11\n\taddq\t%r11, %r10\n\tcall\t*%r10\n";
  for (const std::string& call : {direct, pic})
    EXPECT_EQ(filter_assembly(function_start("f") + call + table + "\tnop\n"),
              function_start("f") + entry_sled() + record('0') + "\tnop\n");
  const std::string unrelated = "1:\tmovq\t%rax, %rbx\n\tcall\t*%r10\n";
  EXPECT_EQ(filter_assembly(unrelated), unrelated);
}

TEST(AsmFilter, SledStaysBehindEndbr64) {
  const std::string in = function_start("f") + ".LFB0:\n\tendbr64\n" + text(kEntry) + text(kExit) + "\tret\n";
  EXPECT_EQ(filter_assembly(in), function_start("f") + ".LFB0:\n\tendbr64\n" + entry_sled() + record('0') +
                                     exit_sled() + record('1') + "\tret\n");
}

TEST(AsmFilter, EachFormOfReturnIsAReturn) {
  EXPECT_EQ(kind_before("\tret"), '1');
  EXPECT_EQ(kind_before("\tret\t$8"), '1');
  EXPECT_EQ(kind_before("\trep ret"), '1');
  EXPECT_EQ(kind_before("\trep; ret"), '1');
  EXPECT_EQ(kind_before("\tretq"), '1');
  EXPECT_EQ(kind_before("\tjmp\t__x86_return_thunk"), '1');
  EXPECT_EQ(kind_before("\tret\t# verbose-asm says why"), '1');
}

TEST(AsmFilter, JumpToAnotherFunctionIsATailCall) {
  EXPECT_EQ(kind_before("\tjmp\tother"), '2');
  EXPECT_EQ(kind_before("\tjmp\tother@PLT"), '2');
  EXPECT_EQ(kind_before("\tjmp\t*%rax"), '2');
  EXPECT_EQ(kind_before("\tnotrack jmp\t*%r11"), '2');
  EXPECT_EQ(kind_before("\tjmp\t*retired(%rip)"), '2');
}

TEST(AsmFilter, KindOfExitLooksPastLabelsDirectivesAndComments) {
  EXPECT_EQ(kind_before("\t.cfi_def_cfa_offset 8\n.L3:\n# a comment\n\n\tjmp\tother"), '2');
  EXPECT_EQ(kind_before("\t.cfi_restore 6\n\t.loc 1 2 3\n\tret"), '1');
}

TEST(AsmFilter, ExitWithNothingBehindItIsAReturn) { EXPECT_EQ(kind_before(""), '1'); }

TEST(AsmFilter, ColdPartOfAFunctionKeepsItsExits) {
  const std::string in = function_start("f") + text(kEntry) + text(kExit) + "\tret\n\t.section\t.text.unlikely\n" +
                         function_start("f.cold") + text(kExit) + "\tjmp\tother\n";
  EXPECT_EQ(filter_assembly(in), function_start("f") + entry_sled() + record('0') + exit_sled() + record('1') +
                                     "\tret\n\t.section\t.text.unlikely\n" + function_start("f.cold") + "1:\n" +
                                     record('3') + exit_sled() + record('2') + "\tjmp\tother\n");
}

// gcc instruments the jump of a thunk that adjusts `this`, though the thunk has no entry: its exit closed a call of
// another function.
TEST(AsmFilter, ThunkWithoutEntryGetsNoRecord) {
  const std::string thunk = function_start("_ZThn16_N1C1bEi") + "\tsubq\t$16, %rdi\n";
  const std::string in = function_start("_ZN1C1bEi") + text(kEntry) + text(kExit) + "\tret\n" + thunk + text(kExit) +
                         "\tjmp\t.LTHUNK0\n" + function_start("g") + text(kEntry) + text(kExit) + "\tret\n";
  const std::string out = filter_assembly(in);
  EXPECT_NE(out.find(thunk + exit_sled().substr(aligned().size()) + "\tjmp\t.LTHUNK0\n"), std::string::npos) << out;
  EXPECT_EQ(count(out, "\tkarst_sleds"), 4U);
}

TEST(AsmFilter, TypesDeclaredInInlineAssemblyStartNoFunction) {
  const std::string in = function_start("f") + text(kEntry) + "#APP\n\t.type\tinner, @function\n#NO_APP\n" +
                         "\t.type\ttable, @object\n" + text(kExit) + "\tret\n";
  EXPECT_EQ(count(filter_assembly(in), "\tkarst_sleds"), 2U);
}

TEST(AsmFilter, TextWithoutTablesIsUnchanged) {
  const std::string in =
      "\t.file\t\"x.s\"\n\t.text\n\t.globl\tf\n\t.type\tf, @function\nf:\n1:\tcall\tg\n\tjmp\t1b\n"
      "\t.section\t.rodata\n\t.string\t\"1:\\tcall\\t*__fentry__\"\n\t.previous\n\tret";
  EXPECT_EQ(filter_assembly(in), in);
  EXPECT_EQ(filter_assembly(""), "");
  EXPECT_EQ(filter_assembly("\n"), "\n");
}

TEST(AsmFilter, LineEndsOfOtherLinesArePreserved) {
  std::string in = function_start("f") + text(kEntry) + text(kExit) + "\tret\n";
  for (std::size_t at = 0; (at = in.find('\n', at)) != std::string::npos; at += 2) in.insert(at, 1, '\r');
  const std::string out = filter_assembly(in);
  EXPECT_EQ(count(out, "\tkarst_sleds"), 2U) << out;
  EXPECT_EQ(out.find("__mcount_loc"), std::string::npos);
  EXPECT_EQ(out.find("__return_loc"), std::string::npos);
  EXPECT_NE(out.find("1b - ., 1\n"), std::string::npos);
  EXPECT_TRUE(out.ends_with("\tret\r\n"));
}

TEST(AsmFilter, LastLineNeedsNoLineEnd) {
  const std::string in = function_start("f") + text(kEntry) + text(kExit) + "\tjmp\tother";
  EXPECT_EQ(filter_assembly(in),
            function_start("f") + entry_sled() + record('0') + exit_sled() + record('2') + "\tjmp\tother");
  const std::string cut = text(kEntry).substr(0, kEntry.size() - 1);
  EXPECT_EQ(filter_assembly(cut), entry_sled() + record('0'));
}

TEST(AsmFilter, TextCutInsideATableIsTakenToItsEnd) {
  for (std::size_t size = 0; size <= kEntry.size(); ++size) {
    const std::string out = filter_assembly(kEntry.substr(0, size));
    EXPECT_LE(count(out, "\tkarst_sleds"), 1U) << size;
  }
}

TEST(AsmFilter, FilteringTwiceIsFilteringOnce) {
  const std::string once =
      filter_assembly("\t.section\t.text.f,\"axG\",@progbits,f,comdat\n" + function_start("f") + text(kEntry) +
                      text(kExit) + "\tret\n" + function_start("f.cold") + text(kExit) + "\tjmp\tg\n");
  EXPECT_EQ(filter_assembly(once), once);
}

// Unwinding finds a function by where its unwind information begins: each part has its own.
TEST(AsmFilter, SecondPartsHaveARecordOfTheirOwn) {
  const std::string out = filter_assembly(function_start("f") + text(kEntry) + text(kExit) + "\tret\n" +
                                          "\t.section\t.text.unlikely\n" + function_start("f.cold") + "\tcall\tg\n");
  EXPECT_NE(out.find("f.cold:\n1:\n" + record('3') + "\tcall\tg\n"), std::string::npos) << out;
  // Neither what has no entry, nor what only looks like a part of the function at hand.
  for (const std::string& other :
       {function_start("f") + function_start("f.cold"), function_start("f") + text(kEntry) + function_start("g.cold"),
        function_start("f") + text(kEntry) + "\t.type\tf.cold, @function\n#APP\nf.cold:\n"})
    EXPECT_EQ(filter_assembly(other).find(record('3')), std::string::npos) << other;
}

TEST(AsmFilter, FunctionsOfTheAlwaysSectionSaySo) {
  std::string entry = text(kEntry);
  entry.replace(entry.find("__mcount_loc"), 12, "karst_always_loc");
  std::string expected = function_start("f") + entry_sled() + record('0') + "\tnop\n";
  expected.replace(expected.find("., 0") + 3, 1, "256");
  EXPECT_EQ(filter_assembly(function_start("f") + entry + "\tnop\n"), expected);
}

}  // namespace
}  // namespace karst::toolchain
