// Probes' notes: their operands by hand-made examples of what compilers write, and damaged files.
#include "patch/sdt.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/sealed_memory.h"
#include "format/patch_table.h"
#include "patch/find.h"

namespace karst::patch {
namespace {

using format::SavedProbe;
using format::ValueHow;

ProbeValues values(const std::string& text, const std::string& choice = "a:b") {
  ProbeNote probe;
  probe.provider = "a";
  probe.name = "b";
  probe.values = text;
  return values_of(probe, *ProbeChoice::parse(choice));
}

std::uint64_t word(std::size_t offset) { return offset / sizeof(std::uint64_t); }

TEST(Sdt, RegistersOfEverySize) {
  const ProbeValues v = values("8@%rbx -4@%eax -2@%r9w 1@%sil 1@%ah 8f@%xmm3");
  EXPECT_EQ(v.description, "arg1:x,arg2:i4,arg3:i2,arg4:u1,arg5:u1,arg6:f8|");
  ASSERT_EQ(v.ops.size(), 6U);
  EXPECT_EQ(v.ops[0].place, word(offsetof(SavedProbe, rbx)));
  EXPECT_EQ(v.ops[1].place, word(offsetof(SavedProbe, rax)));
  EXPECT_EQ(v.ops[2].place, word(offsetof(SavedProbe, r9)));
  EXPECT_EQ(v.ops[3].place, word(offsetof(SavedProbe, rsi)));
  EXPECT_EQ(v.ops[4].place, word(offsetof(SavedProbe, rax)));
  EXPECT_EQ(v.ops[4].offset, 1);
  EXPECT_EQ(v.ops[5].place, format::kFirstVectorPlace + 3);
}

TEST(Sdt, MemoryAndConstants) {
  const ProbeValues v = values("-4@-80(%rbp) 8@(%rdi) 4@0x10(%rsp) 8@$5 -4@$-7 8@8(%rax,%rcx,4) 2@(%rax,%rdx)");
  EXPECT_EQ(v.description, "arg1:i4,arg2:x,arg3:u4,arg4:x,arg5:i4,arg6:x,arg7:u2|");
  ASSERT_EQ(v.ops.size(), 7U);
  EXPECT_EQ(v.ops[0].how, static_cast<std::uint8_t>(ValueHow::kMemory));
  EXPECT_EQ(v.ops[0].offset, -80);
  EXPECT_EQ(v.ops[2].offset, 16);
  EXPECT_EQ(v.ops[2].place, word(offsetof(SavedProbe, rsp)));
  EXPECT_EQ(v.ops[4].how, static_cast<std::uint8_t>(ValueHow::kConstant));
  EXPECT_EQ(v.ops[4].offset, -7);
  const format::IndexedSize indexed = format::indexed_size(v.ops[5].size);
  EXPECT_EQ(v.ops[5].how, static_cast<std::uint8_t>(ValueHow::kIndexed));
  EXPECT_EQ(indexed.bytes, 8);
  EXPECT_EQ(indexed.shift, 2);
  EXPECT_EQ(indexed.index, word(offsetof(SavedProbe, rcx)));
  EXPECT_EQ(format::indexed_size(v.ops[6].size).shift, 0);
}

TEST(Sdt, WhatIsNotUnderstoodIsNotThere) {
  for (const char* text :
       {"8@name(%rip)", "8@%fs:8", "8@%r16", "8@%xmm9", "8@(%eax)", "8@4(%rax,%rbx,3)", "8@$99999999999", "3@%rax", "@",
        "8@", "8@(%rax", "8@()", "8@%", "8@(,%rax,4)", "-128@%rax"}) {
    const ProbeValues v = values(text);
    EXPECT_EQ(v.description, "arg1:?|") << text;
    EXPECT_TRUE(v.ops.empty()) << text;
  }
}

TEST(Sdt, NamesAndTypesAreTheUsers) {
  EXPECT_EQ(values("8@%rax 8@%rbx 4@%ecx 8@8(%rdx) 8@%rsi", "a:b(text:str,id:uint,flags:hex,more:str)").description,
            "text:s,id:u8,flags:x,more:s,arg5:x|");
  const ProbeValues v = values("8@%rax 8@8(%rdx) 8@%rcx", "a:b(text:str,more:str,what:type)");
  EXPECT_EQ(v.ops[0].how, static_cast<std::uint8_t>(ValueHow::kText));
  EXPECT_EQ(v.ops[1].how, static_cast<std::uint8_t>(ValueHow::kTextAt));
  EXPECT_EQ(v.ops[1].offset, 8);
  EXPECT_EQ(v.ops[2].how, static_cast<std::uint8_t>(ValueHow::kTextAt));
  // What is no pointer is no text.
  EXPECT_EQ(values("4@%eax", "a:b(text:str)").description, "text:u4|");
}

TEST(Sdt, ManyValuesAreTwelve) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "8@%rax ";
  EXPECT_EQ(values(text).ops.size(), format::kMostProbeValues);
}

TEST(Sdt, ChoicesOfProbes) {
  ProbeNote probe;
  probe.provider = "python";
  probe.name = "gc__start";
  EXPECT_TRUE(ProbeChoice::parse("python:gc__*")->matches(probe));
  EXPECT_TRUE(ProbeChoice::parse("*:*")->matches(probe));
  EXPECT_FALSE(ProbeChoice::parse("python:line")->matches(probe));
  for (const char* wrong :
       {"", "python", ":x", "python:", "a:b:c", "a:b(", "a:b()", "a:b(c:)", "a:b(c d)", "a:b(c:int"})
    EXPECT_FALSE(ProbeChoice::parse(wrong)) << wrong;
}

// This very program has two of them.
__attribute__((noinline)) int pass(int a) {
  asm volatile(
      "990: nop\n"
      ".pushsection .note.stapsdt,\"\",\"note\"\n"
      ".balign 4\n.4byte 992f-991f,994f-993f,3\n"
      "991: .asciz \"stapsdt\"\n992: .balign 4\n"
      "993: .8byte 990b\n.8byte 0\n.8byte 0\n"
      ".asciz \"patch_test\"\n.asciz \"pass\"\n.asciz \"-4@%%edi\"\n"
      "994: .balign 4\n.popsection\n"
      :
      : "D"(a));
  return a + 1;
}

WantedPlaces every_probe() {
  WantedPlaces wanted;
  wanted.functions = false;
  wanted.probes.push_back(*ProbeChoice::parse("*:*"));
  return wanted;
}

TEST(Sdt, OwnProbeIsFound) {
  EXPECT_EQ(pass(3), 4);
  const Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto found = find_in_file(file.get(), every_probe(), std::nullopt);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->probes.size(), 1U);
  EXPECT_EQ(found->probes[0].name, "patch_test:pass");
  EXPECT_EQ(found->probes[0].description, "arg1:i4|");
  EXPECT_TRUE(found->functions.empty());
}

TEST(Sdt, DamagedFilesGiveSoundTablesOrNone) {
  const Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto whole = ElfImage::read(file.get());
  ASSERT_TRUE(whole);
  const std::span<const std::byte> notes = whole->contents(".note.stapsdt");
  ASSERT_FALSE(notes.empty());
  const auto at = static_cast<std::size_t>(notes.data() - whole->whole().data());
  std::mt19937_64 random(20261125);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    std::vector<std::byte> bytes(whole->whole().begin(), whole->whole().end());
    for (int i = 0; i <= round % 4; ++i) bytes[at + random() % notes.size()] = static_cast<std::byte>(random());
    const Descriptor damaged = sealed_memory("damaged", bytes);
    const auto found = find_in_file(damaged.get(), every_probe(), std::nullopt);
    if (!found || found->table.empty()) continue;
    format::PatchTable table;
    ASSERT_GE(found->table.size(), sizeof table);
    std::memcpy(&table, found->table.data(), sizeof table);
    ASSERT_EQ(table.probes, 1U);
    format::PatchProbe probe;
    std::memcpy(&probe, found->table.data() + sizeof table, sizeof probe);
    EXPECT_LT(probe.name, table.text_size);
    EXPECT_LT(probe.description, table.text_size);
    EXPECT_LE(probe.values, format::kMostProbeValues);
    EXPECT_EQ(found->table.back(), std::byte{0});
    format::PatchJump jump;
    std::memcpy(&jump, found->table.data() + sizeof table + sizeof probe, sizeof jump);
    EXPECT_TRUE(whole->is_code(jump.address));
  }
}

}  // namespace
}  // namespace karst::patch
