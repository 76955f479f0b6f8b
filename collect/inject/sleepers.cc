#include "collect/inject/sleepers.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "sampler/unwind.h"
#include "symbols/credentials.h"

namespace karst::collect {
namespace {

constexpr std::size_t kMostSleepers = 16;  // of a process that are judged: one that is free is enough

sampler::RawSample sample_of(const StackWords& stack, std::shared_ptr<const sampler::AddressSpace> space) {
  const user_regs_struct& r = stack.registers;
  sampler::RawSample sample;
  sample.registers = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                      r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
  sample.stack.resize(stack.words.size() * sizeof(std::uint64_t));
  std::memcpy(sample.stack.data(), stack.words.data(), sample.stack.size());
  sample.space = std::move(space);
  return sample;
}

}  // namespace

bool Sleepers::is_free(pid_t thread, const StackWords& stack) {
  const auto known = sleepers_.find(thread);
  if (known != sleepers_.end() && known->second.stack.is_same(stack)) return known->second.is_free;
  if (known != sleepers_.end() || sleepers_.size() < kMostSleepers) sleepers_[thread] = {stack};
  return false;
}

void Sleepers::judge(const ForeignMemory& memory, const std::vector<Mapping>& mappings, const OwnAllocator& allocator) {
  std::vector<Sleeper*> judged;
  for (auto& [thread, sleeper] : sleepers_)
    if (!std::exchange(sleeper.is_judged, true)) judged.push_back(&sleeper);
  if (judged.empty()) return;
  std::ifstream file("/proc/" + std::to_string(process_) + "/maps");
  const std::string maps{std::istreambuf_iterator<char>(file), {}};
  sampler::AddressSpaces spaces;
  const auto pid = static_cast<std::uint32_t>(process_);
  spaces.begin_with(pid, maps, {pid});
  std::vector<sampler::RawSample> samples;
  samples.reserve(judged.size());
  for (const Sleeper* sleeper : judged) samples.push_back(sample_of(sleeper->stack, spaces.of(pid)));
  const auto as = symbols::Credentials::of_process(process_, geteuid(), getegid());
  const auto unwound = sampler::unwind(samples, spaces.files(), as);
  if (!unwound) return;
  const BusyCode busy(memory, mappings, allocator);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const sampler::Unwound::Stack& stack = unwound->stacks[i];
    judged[i]->is_free = !stack.cut && busy.is_free(stack.addresses, memory);
  }
}

}  // namespace karst::collect
