// SPDX-License-Identifier: MIT
#include "collect/inject/doubtful_stacks.h"

#include <unistd.h>

#include <chrono>
#include <span>
#include <utility>

#include "base/process_maps.h"
#include "sandbox/credentials.h"

namespace karst::collect {
namespace {

constexpr std::size_t kMostUnknown = 16;  // one thread that is free is enough
constexpr std::chrono::milliseconds kWhileStopped{3};
constexpr std::chrono::seconds kToRead{5};

Result<std::vector<std::uint64_t>> frames_of(kernel::LiveUnwinder& unwinder, const StackWords& stack,
                                             std::chrono::milliseconds patience) {
  const user_regs_struct& r = stack.registers;
  const kernel::Registers registers = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                                       r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
  return unwinder.frames(registers, std::as_bytes(std::span(stack.words)), patience);
}

}  // namespace

bool DoubtfulStacks::is_free(const StackWords& stack, const BusyCode& busy, const ForeignMemory& memory) {
  if (unwinder_) {
    const auto frames = frames_of(*unwinder_, stack, kWhileStopped);
    if (frames && !frames->empty()) return busy.is_free(*frames, memory);
  }
  if (unknown_.size() < kMostUnknown) unknown_.push_back(stack);
  return false;
}

void DoubtfulStacks::prepare() {
  if (unknown_.empty()) return;
  kernel::AddressSpaces now;
  const auto pid = static_cast<std::uint32_t>(process_.number());
  now.begin_with(pid, read_maps(process_.path("maps")), {pid});
  if (!unwinder_ || *now.of(pid) != *spaces_.of(pid) || now.files() != spaces_.files()) {
    spaces_ = std::move(now);
    auto started = kernel::LiveUnwinder::start(spaces_.of(pid), spaces_.files(),
                                               sandbox::Credentials::of_process(process_, geteuid(), getegid()));
    unwinder_.reset();
    if (started) unwinder_.emplace(std::move(*started));
  }
  for (const StackWords& stack : std::exchange(unknown_, {}))
    if (unwinder_ && !frames_of(*unwinder_, stack, kToRead)) unwinder_.reset();
}

}  // namespace karst::collect
