// Jumps to sums of an address and a distance: within a function, by its tables, and out of it, to another.
long ends;

__attribute__((used, noinline)) long target(long n) {
  ++ends;
  return n + ends;
}

long by_switch(long n);
long by_labels(long n);

// As -mcmodel=large has it: a distance in the code, beside a switch by distances in a table.
__asm__(
    ".text\n.p2align 4\n.globl by_switch\n.type by_switch, @function\n"
    "by_switch:\n.cfi_startproc\n"
    "  lea switch_table(%rip), %rdx\n  mov %rdi, %rax\n  and $3, %eax\n  movslq (%rdx,%rax,4), %rax\n"
    "  add %rdx, %rax\n  jmp *%rax\n"
    "switch_0:\n  mov $1, %eax\n  add %rdi, %rax\n  nop\n  ret\n"
    "switch_1:\n  add $1, %rdi\n"
    "switch_2:\n  lea by_switch(%rip), %rdx\n  movabs $target - by_switch, %rax\n  add %rdx, %rax\n  jmp *%rax\n"
    "switch_3:\n  mov $2, %eax\n  sub %rdi, %rax\n  nop\n  ret\n"
    ".cfi_endproc\n.size by_switch, . - by_switch\n"
    ".section .rodata\n.p2align 2\nswitch_table:\n"
    "  .long switch_0 - switch_table, switch_1 - switch_table, switch_2 - switch_table, switch_3 - "
    "switch_table\n.text\n");

// The distance comes from memory, and the function has a table of labels, whose jump could be alike: not known.
__asm__(
    ".text\n.p2align 4\n.globl by_labels\n.type by_labels, @function\n"
    "by_labels:\n.cfi_startproc\n"
    "  lea labels(%rip), %rdx\n  mov %rdi, %rax\n  and $1, %eax\n  mov (%rdx,%rax,8), %rax\n  jmp *%rax\n"
    "label_0:\n  mov $1, %eax\n  add %rdi, %rax\n  nop\n  ret\n"
    "label_1:\n  lea by_labels(%rip), %rdx\n  mov distance(%rip), %rax\n  add %rdx, %rax\n  jmp *%rax\n"
    ".cfi_endproc\n.size by_labels, . - by_labels\n"
    ".section .data.rel.ro,\"aw\"\n.p2align 3\nlabels:\n  .quad label_0, label_1\ndistance:\n  .quad target - "
    "by_labels\n"
    ".text\n");

int main(void) {
  long sum = 0;
  for (long n = 0; n < 400; ++n) sum += by_switch(n) + by_labels(n);
  return (int)(sum & 63);
}
