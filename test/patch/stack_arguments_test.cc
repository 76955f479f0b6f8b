// What is told of functions by their own code, of some that are written for it: in assembly, with frames as compilers
// make them. Real and random ones are held against what programs compute (test/e2e/tail_calls.py).
#include "patch/stack_arguments.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "base/descriptor.h"
#include "patch/tail_calls.h"

// FRAME(name, code): a function of that code, at whose begin the return address is on top.
#define FRAME(name, code)                                                                                            \
  __asm__(".text\n.globl stack_" #name "\n.type stack_" #name ", @function\nstack_" #name ":\n.cfi_startproc\n" code \
          "\n.cfi_endproc\n.size stack_" #name ", . - stack_" #name "\n")
#define ROOM "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n"
#define NO_ROOM "add $24, %rsp\n.cfi_adjust_cfa_offset -24\n"

FRAME(nothing, "lea 1(%rdi), %eax\nret");
FRAME(argument, "mov 8(%rsp), %rax\nret");
FRAME(return_address, "mov (%rsp), %rax\nret");
FRAME(red_zone, "mov %rdi, -16(%rsp)\nmov -16(%rsp), %rax\nret");
FRAME(saves,
      "push %rbx\n.cfi_adjust_cfa_offset 8\nmov %edi, %ebx\ncall stack_nothing\nadd %ebx, %eax\npop %rbx\n"
      ".cfi_adjust_cfa_offset -8\nret");
FRAME(local, ROOM "mov $1, %edi\nmov %rsp, %rdi\ncall stack_nothing\n" NO_ROOM "ret");
FRAME(local_then_argument, ROOM "lea 8(%rsp), %rdi\ncall stack_nothing\nmov 32(%rsp), %rax\n" NO_ROOM "ret");
FRAME(variadic, "lea 8(%rsp), %rax\nmov %rax, (%rdi)\nret");
FRAME(counts_up,
      "xor %eax, %eax\nlea -8(%rsp), %rdx\nlea 40(%rsp), %rcx\n1: add $16, %rdx\nadd (%rdx), %rax\n"
      "cmp %rcx, %rdx\njne 1b\nret");
FRAME(counts_up_elsewhere, "lea 40(%rdi), %rcx\n1: add $16, %rdi\nadd (%rdi), %rax\ncmp %rcx, %rdi\njne 1b\nret");
FRAME(counts_a_copy_up, ROOM
      "lea -32(%rsp), %rdi\nmov %rdi, %rdx\ntest %esi, %esi\nje 1f\nxor %edx, %edx\n"
      "1: add $16, %rdx\nmov (%rdx), %rax\n" NO_ROOM "ret");
FRAME(after_a_call, ROOM "mov %rsp, %rdi\ncall stack_nothing\nadd $16, %rdi\n" NO_ROOM "ret");
FRAME(keeps_address, ROOM "mov %rsp, %rax\nmov %rax, (%rdi)\n" NO_ROOM "ret");
FRAME(index, "mov 8(%rsp,%rdi,8), %rax\nret");
FRAME(copy_at_begin, "mov %rsp, %rax\nmov 8(%rax), %rax\nret");
FRAME(switches, "mov %rsp, (%rdi)\nmov (%rsi), %rsp\nret");
FRAME(pointer_frame,
      "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register 6\n"
      "mov %edi, -4(%rbp)\nmov -4(%rbp), %eax\npop %rbp\n.cfi_def_cfa 7, 8\nret");
FRAME(pointer_argument,
      "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register 6\n"
      "mov 16(%rbp), %eax\npop %rbp\n.cfi_def_cfa 7, 8\nret");
FRAME(goes_on, "inc %edi\njmp stack_local");
FRAME(goes_on_to_argument, "inc %edi\njmp stack_argument");
FRAME(each_other_1, "test %edi, %edi\nje 1f\njmp stack_each_other_2\n1: ret");
FRAME(each_other_2, "dec %edi\njmp stack_each_other_1");
FRAME(each_other_3, "test %edi, %edi\nje stack_each_other_4\nmov 8(%rsp), %eax\nret");
FRAME(each_other_4, "dec %edi\njmp stack_each_other_3");
FRAME(anywhere, "jmp *%rax");
FRAME(pops_arguments, "ret $16");

namespace karst::patch {
namespace {

class StackArgumentsOf : public testing::Test {
 protected:
  void SetUp() override {
    const Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    auto read = ElfImage::read(file.get());
    ASSERT_TRUE(read);
    image_ = std::make_unique<ElfImage>(std::move(*read));
    auto frames = Frames::read(*image_);
    ASSERT_TRUE(frames);
    frames_ = std::make_unique<Frames>(std::move(*frames));
    callees_ = std::make_unique<Callees>(*image_);
    arguments_ = std::make_unique<StackArguments>(*image_, *frames_, *callees_);
  }
  bool takes_none(const std::string& name) {
    for (const ElfImage::NamedCode& f : image_->functions())
      if (f.name == "stack_" + name) return arguments_->takes_none(f.address);
    ADD_FAILURE() << "no function " << name;
    return false;
  }

 private:
  std::unique_ptr<ElfImage> image_;
  std::unique_ptr<Frames> frames_;
  std::unique_ptr<Callees> callees_;
  std::unique_ptr<StackArguments> arguments_;
};

TEST_F(StackArgumentsOf, FunctionsThatReachTheirOwnFrameAloneAreNone) {
  for (const char* name : {"nothing", "red_zone", "saves", "local", "counts_up_elsewhere", "after_a_call",
                           "pointer_frame", "goes_on", "each_other_1", "each_other_2"})
    EXPECT_TRUE(takes_none(name)) << name;
}

TEST_F(StackArgumentsOf, WhatReadsTheCallersFrameOrMayDoSoIsNot) {
  for (const char* name :
       {"argument", "return_address", "local_then_argument", "variadic", "counts_up", "counts_a_copy_up",
        "keeps_address", "index", "copy_at_begin", "switches", "pointer_argument", "goes_on_to_argument",
        "each_other_3", "each_other_4", "anywhere", "pops_arguments"})
    EXPECT_FALSE(takes_none(name)) << name;
}

TEST_F(StackArgumentsOf, WhatIsNoFunctionIsNot) {
  const Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto image = ElfImage::read(file.get());
  const auto frames = Frames::read(*image);
  const Callees callees(*image);
  StackArguments arguments(*image, *frames, callees);
  EXPECT_FALSE(arguments.takes_none(0));
  EXPECT_FALSE(arguments.takes_none(~std::uint64_t{0}));
  EXPECT_FALSE(arguments.takes_none(frames->all().front().code.begin + 1));
}

}  // namespace
}  // namespace karst::patch
