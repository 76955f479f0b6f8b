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
/// Of the file's entry with this number.
std::string entry_sled(int number = 1) {
  return aligned() + ".Lkarst" + std::to_string(number) + ":\n1:\t.byte\t0x0f, 0x1f, 0x44, 0x00, 0x00\n";
}
std::string exit_sled() { return aligned() + "1:\n\t.byte\t0x0f, 0x1f, 0x44, 0x00, 0x00\n"; }

std::string record(const std::string& words) {
  return "\t.pushsection\tkarst_sleds,\"aR?\",@progbits\n\t.balign\t2\n" + words + "\t.popsection\n";
}
constexpr const char* kDistance = "\t.long\t1b - .\n";
std::string entry_record() { return record(kDistance); }
std::string far_record(int kind) { return record("\t.short\t1, " + std::to_string(kind) + "\n" + kDistance); }
std::string return_record() { return record("\t.short\t1b - .Lkarst1 + 1\n"); }
std::string tail_record() { return record("\t.short\t1b - .Lkarst1 + 32769\n"); }

std::string text(std::string_view s) { return std::string(s); }

std::size_t count(std::string_view where, std::string_view what) {
  std::size_t n = 0;
  for (auto at = where.find(what); at != std::string_view::npos; at = where.find(what, at + what.size())) ++n;
  return n;
}

/// The kind of an exit that stands before `instructions`, by its record: a return, a tail call, or none.
char kind_before(std::string_view instructions) {
  const std::string out =
      filter_assembly(function_start("f") + text(kEntry) + text(kExit) + std::string(instructions) + "\n");
  const bool returns = out.find(return_record()) != std::string::npos;
  const bool calls = out.find(tail_record()) != std::string::npos;
  return returns == calls ? '?' : returns ? '1' : '2';
}

TEST(AsmFilter, EntryBecomesASledAndARecord) {
  EXPECT_EQ(filter_assembly("\t.text\n" + function_start("f") + text(kEntry) + "\tpushq\t%rbp\n"),
            "\t.text\n" + function_start("f") + entry_sled() + entry_record() + "\tpushq\t%rbp\n");
}

TEST(AsmFilter, EntryOfCodeThatIsNotPicBecomesTheSameSled) {
  const std::string in =
      function_start("f") + "1:\tcall\t__fentry__\n\t.section __mcount_loc, \"a\",@progbits\n\t.quad 1b\n\t.previous\n";
  EXPECT_EQ(filter_assembly(in), function_start("f") + entry_sled() + entry_record());
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
              function_start("f") + entry_sled() + entry_record() + "\tnop\n");
  const std::string unrelated = "1:\tmovq\t%rax, %rbx\n\tcall\t*%r10\n";
  EXPECT_EQ(filter_assembly(unrelated), unrelated);
}

TEST(AsmFilter, SledStaysBehindEndbr64) {
  const std::string in = function_start("f") + ".LFB0:\n\tendbr64\n" + text(kEntry) + text(kExit) + "\tret\n";
  EXPECT_EQ(filter_assembly(in), function_start("f") + ".LFB0:\n\tendbr64\n" + entry_sled() + entry_record() +
                                     exit_sled() + return_record() + "\tret\n");
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

/// What gcc says of a sibling call of `function`, with so many bytes of arguments on the stack.
std::string rtl(const std::string& function, int bytes) {
  return "#(call_insn/j:TI 19 9 20 2 (set (reg:SI 0 ax)\n"
         "#        (call (mem:QI (" +
         function + ") [0 S1 A8])\n#            (const_int " + std::to_string(bytes) +
         (bytes == 0 ? " [0]" : " [0x8]") +
         "))) \"odd (name.c\":4:59 913 {*sibcall_value}\n"
         "#     (nil)\n#    (expr_list:SI (use (reg:SI 5 di))\n#        (const_int 0 [0])))\n";
}

TEST(AsmFilter, ATailCallThatPassesNothingOnTheStackSaysSo) {
  const std::string symbol = "symbol_ref:DI (\"g\") [flags 0x41] <function_decl 0x7f g>";
  const std::string start = function_start("f") + text(kEntry);
  const std::string jump = text(kExit) + "\tjmp\tg@PLT\n";
  const auto has = [&](const std::string& said, const std::string& what) {
    return filter_assembly(start + said + jump).find(what) != std::string::npos;
  };
  const std::string by_registers = record("\t.short\t3, 1b - .Lkarst1 + 32769\n");
  EXPECT_TRUE(has(rtl(symbol, 0), by_registers));
  EXPECT_FALSE(has(rtl(symbol, 0), "call_insn"));  // it is no comment for the assembler to read
  EXPECT_TRUE(has(rtl("reg/f:DI 0 ax [orig:83 s_3(D)->f((]", 0), by_registers));
  EXPECT_TRUE(has(rtl("mem/f:DI (plus:DI (reg:DI 5 di) (const_int 8 [0x8])) [1 *\"a)\" S8]", 0), by_registers));
  EXPECT_TRUE(has(rtl(symbol, 8), tail_record()));
  EXPECT_TRUE(has("", tail_record()));
  for (const char* name : {"dlsym", "dlopen", "*dlsym", "vfork"})
    EXPECT_TRUE(has(rtl("symbol_ref:DI (\"" + std::string(name) + "\") [flags 0x41]", 0), tail_record())) << name;
  // What was said of another instruction.
  EXPECT_TRUE(has(rtl(symbol, 0) + "#(insn 6 3 8 2 (set (reg:SI 5 di)\n#        (reg:SI 4 si)))\n\tmovl\t%esi, %edi\n",
                  tail_record()));
  EXPECT_TRUE(has("#(call_insn:TI 19 (call (mem:QI (" + symbol + "))\n#  (const_int 0 [0])))\n", tail_record()));
  EXPECT_EQ(filter_assembly("\tnop\n" + rtl(symbol, 0)), "\tnop\n");
}

TEST(AsmFilter, KindOfExitLooksPastLabelsDirectivesAndComments) {
  EXPECT_EQ(kind_before("\t.cfi_def_cfa_offset 8\n.L3:\n# a comment\n\n\tjmp\tother"), '2');
  EXPECT_EQ(kind_before("\t.cfi_restore 6\n\t.loc 1 2 3\n\tret"), '1');
}

TEST(AsmFilter, ExitWithNothingBehindItIsAReturn) { EXPECT_EQ(kind_before(""), '1'); }

TEST(AsmFilter, ColdPartOfAFunctionKeepsItsExits) {
  const std::string in = function_start("f") + text(kEntry) + text(kExit) + "\tret\n\t.section\t.text.unlikely\n" +
                         function_start("f.cold") + text(kExit) + "\tjmp\tother\n";
  EXPECT_EQ(filter_assembly(in), function_start("f") + entry_sled() + entry_record() + exit_sled() + return_record() +
                                     "\tret\n\t.section\t.text.unlikely\n" + function_start("f.cold") + "1:\n" +
                                     far_record(3) + exit_sled() + far_record(2) + "\tjmp\tother\n");
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
  EXPECT_NE(out.find(return_record()), std::string::npos);
  EXPECT_TRUE(out.ends_with("\tret\r\n"));
}

TEST(AsmFilter, LastLineNeedsNoLineEnd) {
  const std::string in = function_start("f") + text(kEntry) + text(kExit) + "\tjmp\tother";
  EXPECT_EQ(filter_assembly(in),
            function_start("f") + entry_sled() + entry_record() + exit_sled() + tail_record() + "\tjmp\tother");
  const std::string cut = text(kEntry).substr(0, kEntry.size() - 1);
  EXPECT_EQ(filter_assembly(cut), entry_sled() + entry_record());
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

// An assembler that is asked for a distance that does not fit compiles nothing.
TEST(AsmFilter, ExitsThatMayBeFarOrElsewhereAreFar) {
  const auto is_far = [](const std::string& between) {
    const std::string out =
        filter_assembly("\t.text\n" + function_start("f") + text(kEntry) + between + text(kExit) + "\tret\n");
    EXPECT_NE(out.find(far_record(1)) != std::string::npos, out.find(return_record()) != std::string::npos) << out;
    return out.find(far_record(1)) != std::string::npos;
  };
  const auto times = [](int count, std::string_view line) {
    std::string lines;
    while (count-- != 0) lines += line;
    return lines;
  };
  EXPECT_FALSE(is_far("\tnop\n\t.loc 1 2 3\n\t.cfi_def_cfa_offset 8\n.L3:\n\t.p2align 4,,10\n\t.p2align 3\n"));
  EXPECT_FALSE(is_far(times(1900, "\tmovq\t%rax, %rbx\n")));
  EXPECT_TRUE(is_far(times(1920, "\tmovq\t%rax, %rbx\n")));  // of 15 bytes each that is 28 KiB
  EXPECT_TRUE(is_far(times(500, "\t.p2align 4,,10\n")));
  EXPECT_TRUE(is_far("\t.p2align 12\n"));
  EXPECT_TRUE(is_far("\t.skip\t40000\n"));
  EXPECT_TRUE(is_far("#APP\n\tnop\n#NO_APP\n"));
  EXPECT_TRUE(is_far("\t.section\t.text.hot\n"));
  EXPECT_TRUE(is_far("\t.pushsection .text.hot\n\tnop\n\t.popsection\n"));
  // A table of jumps.
  const std::string table = "\t.section\t.rodata\n\t.align 4\n.L5:\n" + times(9, "\t.long\t.L7-.L5\n");
  EXPECT_FALSE(is_far(table + "\t.text\n\tnop\n"));
  EXPECT_TRUE(is_far(table));
  // Each function is measured from its own entry.
  const std::string two = filter_assembly(function_start("f") + text(kEntry) + times(3000, "\tnop\n") +
                                          function_start("g") + text(kEntry) + text(kExit) + "\tret\n");
  EXPECT_NE(two.find(entry_sled(2) + entry_record() + exit_sled() + record("\t.short\t1b - .Lkarst2 + 1\n")),
            std::string::npos);
}

// Unwinding finds a function by where its unwind information begins: each part has its own.
TEST(AsmFilter, SecondPartsHaveARecordOfTheirOwn) {
  const std::string out = filter_assembly(function_start("f") + text(kEntry) + text(kExit) + "\tret\n" +
                                          "\t.section\t.text.unlikely\n" + function_start("f.cold") + "\tcall\tg\n");
  EXPECT_NE(out.find("f.cold:\n1:\n" + far_record(3) + "\tcall\tg\n"), std::string::npos) << out;
  // Neither what has no entry, nor what only looks like a part of the function at hand.
  for (const std::string& other :
       {function_start("f") + function_start("f.cold"), function_start("f") + text(kEntry) + function_start("g.cold"),
        function_start("f") + text(kEntry) + "\t.type\tf.cold, @function\n#APP\nf.cold:\n"})
    EXPECT_EQ(filter_assembly(other).find(far_record(3)), std::string::npos) << other;
}

TEST(AsmFilter, FunctionsOfTheAlwaysSectionSaySo) {
  std::string entry = text(kEntry);
  entry.replace(entry.find("__mcount_loc"), 12, "karst_always_loc");
  EXPECT_EQ(filter_assembly(function_start("f") + entry + "\tnop\n"),
            function_start("f") + entry_sled() + far_record(256) + "\tnop\n");
}

TEST(AsmFilter, FunctionsWithoutAnEntrySledAreNamed) {
  const std::string end = "\t.size\tf, .-f\n";
  const std::string named =
      "\t.pushsection\tkarst_untraced,\"R?\",@progbits\n\t.balign\t8\n\t.quad\tf\n\t.popsection\n";
  const std::string untraced = function_start("f") + "\tret\n" + end;
  EXPECT_EQ(filter_assembly(untraced), untraced + named);
  EXPECT_EQ(
      count(filter_assembly(function_start("f") + text(kEntry) + text(kExit) + "\tret\n" + end), "karst_untraced"), 0U);
  // Sizes of other symbols, its cold part among them, and what inline assembly says, are not about it.
  EXPECT_EQ(count(filter_assembly(function_start("f") + "\tret\n\t.size\tvalue, 8\n\t.size\tf.cold, .-f.cold\n"),
                  "karst_untraced"),
            0U);
  EXPECT_EQ(count(filter_assembly(function_start("f") + "#APP\n" + end + "#NO_APP\n"), "karst_untraced"), 0U);
}

}  // namespace
}  // namespace karst::toolchain
