// SPDX-License-Identifier: MIT
#include "kernel/unwind.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/descriptor.h"
#include "kernel/expression.h"
#include "patch/elf_image.h"
#include "patch/frames.h"
#include "reader/samples.h"
#include "sandbox/sandbox.h"

namespace karst::kernel {
namespace {

/// Registers that a callee keeps, and where the caller goes on.
constexpr std::array<unsigned, 7> kKept = {3, 6, 12, 13, 14, 15, kInstructionPointer};

/// Where a caller's register is.
struct Place {
  enum class How : std::uint8_t { kUndefined, kSame, kComputed } how = How::kSame;
  std::array<Dwarf_Op, 3> own{};  // short expressions lie here
  const Dwarf_Op* operations = nullptr;
  std::size_t count = 0;

  std::span<const Dwarf_Op> expression() const { return {operations == nullptr ? own.data() : operations, count}; }
};

/// How to get from one address in a function to its caller.
struct Rules {
  patch::Frames::Rules frame{nullptr, &free};  // has the operations
  std::span<const Dwarf_Op> frame_address;
  std::array<Place, kKept.size()> places;
  bool of_signal = false;  // the caller was interrupted there
};

class CodeModule {
 public:
  explicit CodeModule(const CodeFile& file) : is_tracing_(reader::is_tracing(file.path)) {
    if (file.path.empty() || file.path[0] != '/') return;
    const Descriptor opened(sandbox::open_regular(file.path.c_str()));
    struct stat status {};
    if (!opened || fstat(opened.get(), &status) != 0) return;
    auto image = patch::ElfImage::read(opened.get());
    if (!image) return;
    const auto id = image->build_id();
    const bool is_it = file.build_id.empty()
                           ? file.inode == status.st_ino
                           : std::equal(id.begin(), id.end(), file.build_id.begin(), file.build_id.end(),
                                        [](std::byte a, char b) { return a == static_cast<std::byte>(b); });
    if (!is_it) return;
    image_ = std::make_unique<patch::ElfImage>(std::move(*image));
    auto frames = patch::Frames::read(*image_, true);
    if (frames) frames_.emplace(std::move(*frames));
  }

  /// All of it is one function then.
  bool is_tracing() const { return is_tracing_; }
  /// The address in the file of what is mapped there; 0: the file is not known, or has no code there.
  std::uint64_t address(const CodeMapping& mapping, std::uint64_t at) const {
    return image_ == nullptr ? 0 : image_->address_at(at - mapping.begin + mapping.offset);
  }

  UnwoundFunction function_at(std::uint64_t address) const {
    UnwoundFunction found;
    const auto frame = frames_ ? frames_->find(address) : std::nullopt;
    found.address = frame ? frames_->all()[*frame].code.begin : address;
    const std::uint64_t size = frame ? frames_->all()[*frame].code.end - found.address : 1;
    found.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, ~std::uint32_t{0}));
    return found;
  }

  /// Null: there is no rule.
  const Rules* rules(std::uint64_t address) {
    if (!frames_) return nullptr;
    const auto [at, fresh] = rules_.try_emplace(address);
    if (fresh) at->second = make_rules(address);
    return at->second.get();
  }

 private:
  std::unique_ptr<Rules> make_rules(std::uint64_t address) const {
    auto made = std::make_unique<Rules>();
    made->frame = frames_->rules(address);
    if (made->frame == nullptr) return nullptr;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_frame_cfa(made->frame.get(), &operations, &count) != 0 || count == 0) return nullptr;
    made->frame_address = {operations, count};
    bool of_signal = false;
    const int column = dwarf_frame_info(made->frame.get(), nullptr, nullptr, &of_signal);
    if (column != static_cast<int>(kInstructionPointer)) return nullptr;
    made->of_signal = of_signal;
    for (std::size_t i = 0; i < kKept.size(); ++i) {
      Place& place = made->places[i];
      Dwarf_Op* of = nullptr;
      if (dwarf_frame_register(made->frame.get(), static_cast<int>(kKept[i]), place.own.data(), &of, &place.count) != 0)
        return nullptr;
      if (place.count != 0) {
        place.how = Place::How::kComputed;
        place.operations = of == place.own.data() ? nullptr : of;
      } else {
        place.how = of == nullptr ? Place::How::kSame : Place::How::kUndefined;
      }
    }
    return made;
  }

  bool is_tracing_;
  std::unique_ptr<patch::ElfImage> image_;
  std::optional<patch::Frames> frames_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Rules>> rules_;
};

class Unwinder {
 public:
  explicit Unwinder(const std::vector<CodeFile>& files) : files_(files) {}

  Unwound::Stack stack_of(const RawSample& sample) {
    Unwound::Stack stack;
    stack.cut = true;
    const StackCopy memory{sample.registers[kStackPointer], sample.stack};
    Registers now = sample.registers;
    bool interrupted = true;  // it stands at an instruction; a caller stands behind its call
    while (stack.addresses.size() < kMostFrames) {
      stack.addresses.push_back(now[kInstructionPointer]);
      const std::uint64_t at = now[kInstructionPointer] - (interrupted ? 0 : 1);
      const CodeMapping* const mapping = find_mapping(*sample.space, at);
      CodeModule* const module = mapping == nullptr ? nullptr : &module_of(mapping->file);
      const std::uint64_t address = module == nullptr ? 0 : module->address(*mapping, at);
      UnwoundFunction function;
      if (address != 0) function = module->function_at(address);
      if (mapping != nullptr) function.file = mapping->file;
      if (module != nullptr && module->is_tracing()) function = {mapping->file, 0, 0};
      const std::uint32_t number = number_of(function);
      const bool repeats = function.address == 0 && !stack.functions.empty() && stack.functions.back() == number;
      // What is above code that is not known would be by chance.
      if ((mapping != nullptr || stack.functions.empty()) && !repeats) stack.functions.push_back(number);
      const Rules* const rules = address != 0 ? module->rules(address) : nullptr;
      if (rules == nullptr) return stack;
      const auto next = caller(*rules, now, memory);
      if (!next) return stack;
      if ((*next)[kInstructionPointer] == 0) break;
      // A stack grows down. Only a handler's may lie anywhere.
      if ((*next)[kStackPointer] <= now[kStackPointer] && !rules->of_signal) return stack;
      interrupted = rules->of_signal;
      now = *next;
    }
    stack.cut = stack.addresses.size() == kMostFrames;
    return stack;
  }

  std::vector<UnwoundFunction> take_functions() { return std::move(functions_); }

 private:
  CodeModule& module_of(std::uint32_t file) {
    auto& module = modules_[file];
    if (module == nullptr) module = std::make_unique<CodeModule>(files_[file]);
    return *module;
  }

  std::uint32_t number_of(const UnwoundFunction& function) {
    const auto [at, fresh] = numbers_.try_emplace(function, static_cast<std::uint32_t>(functions_.size()));
    if (fresh) functions_.push_back(function);
    return at->second;
  }

  /// Its instruction pointer is 0 where there is none. Nothing: that is not known.
  static std::optional<Registers> caller(const Rules& rules, const Registers& now, const StackCopy& memory) {
    const auto frame = evaluate(rules.frame_address, now, 0, memory);
    if (!frame || frame->number == 0) return std::nullopt;
    Registers next = now;
    next[kStackPointer] = frame->number;
    for (std::size_t i = 0; i < kKept.size(); ++i) {
      const Place& place = rules.places[i];
      const bool is_return = kKept[i] == kInstructionPointer;
      if (place.how == Place::How::kUndefined || (is_return && place.how == Place::How::kSame)) {
        next[kKept[i]] = 0;
        continue;
      }
      if (place.how == Place::How::kSame) continue;
      const auto found = evaluate(place.expression(), now, frame->number, memory);
      if (!found) return std::nullopt;
      const auto value = found->is_value ? std::optional(found->number) : memory.read(found->number);
      if (!value) return std::nullopt;
      next[kKept[i]] = *value;
    }
    return next;
  }

  const std::vector<CodeFile>& files_;
  std::map<std::uint32_t, std::unique_ptr<CodeModule>> modules_;
  std::map<UnwoundFunction, std::uint32_t> numbers_;
  std::vector<UnwoundFunction> functions_;
};

}  // namespace

Unwound unwind_here(std::span<const RawSample> samples, const std::vector<CodeFile>& files) {
  Unwinder unwinder(files);
  Unwound result;
  for (const RawSample& sample : samples) result.stacks.push_back(unwinder.stack_of(sample));
  result.functions = unwinder.take_functions();
  return result;
}

Result<Unwound> unwind(std::span<const RawSample> samples, const std::vector<CodeFile>& files,
                       const std::optional<sandbox::Credentials>& as) {
  sandbox::SandboxOptions sandbox{.as = as};
  sandbox.cpu_time = sandbox.patience = std::chrono::seconds{20};  // a batch takes some tenths of one
  const auto answer = sandbox::in_sandbox(sandbox, [&](sandbox::AnswerWriter& out) {
    const Unwound result = unwind_here(samples, files);
    out.number(result.functions.size());
    for (const UnwoundFunction& function : result.functions) {
      out.number(function.file);
      out.number(function.address);
      out.number(function.size);
    }
    for (const Unwound::Stack& stack : result.stacks) {
      out.number(stack.cut ? 1 : 0);
      out.number(stack.functions.size());
      for (const std::uint32_t function : stack.functions) out.number(function);
      out.number(stack.addresses.size());
      for (const std::uint64_t address : stack.addresses) out.number(address);
    }
  });
  if (!answer) return answer.error();
  sandbox::AnswerReader in(*answer);
  Unwound result;
  result.functions.resize(in.count(3 * sizeof(std::uint64_t)));
  const Error senseless{"their reader gave no answer that makes sense"};
  for (UnwoundFunction& function : result.functions) {
    function.file = static_cast<std::uint32_t>(in.number());
    function.address = in.number();
    function.size = static_cast<std::uint32_t>(in.number());
    if (function.file != UnwoundFunction::kNoFile && function.file >= files.size()) return senseless;
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Unwound::Stack& stack = result.stacks.emplace_back();
    stack.cut = in.number() != 0;
    stack.functions.resize(in.count(sizeof(std::uint64_t)));
    for (std::uint32_t& function : stack.functions) {
      const std::uint64_t place = in.number();
      if (place >= result.functions.size()) return senseless;
      function = static_cast<std::uint32_t>(place);
    }
    stack.addresses.resize(in.count(sizeof(std::uint64_t)));
    for (std::uint64_t& address : stack.addresses) address = in.number();
  }
  if (!in.is_whole()) return senseless;
  return result;
}

Result<LiveUnwinder> LiveUnwinder::start(const std::shared_ptr<const AddressSpace>& space,
                                         const std::vector<CodeFile>& files,
                                         const std::optional<sandbox::Credentials>& as) {
  sandbox::SandboxOptions options{.as = as};
  options.cpu_time = std::chrono::seconds{20};
  Unwinder unwinder(files);
  RawSample sample;
  sample.space = space;
  auto sandbox =
      sandbox::AskedSandbox::start(options, [&](std::span<const std::byte> question, sandbox::AnswerWriter& answer) {
        if (question.size() < sizeof sample.registers) return;
        std::memcpy(sample.registers.data(), question.data(), sizeof sample.registers);
        const auto stack = question.subspan(sizeof sample.registers);
        sample.stack.assign(stack.begin(), stack.end());
        const Unwound::Stack found = unwinder.stack_of(sample);
        if (!found.cut)
          for (const std::uint64_t address : found.addresses) answer.number(address);
      });
  if (!sandbox) return sandbox.error();
  return LiveUnwinder(std::move(*sandbox));
}

Result<std::vector<std::uint64_t>> LiveUnwinder::frames(const Registers& registers, std::span<const std::byte> stack,
                                                        std::chrono::milliseconds patience) {
  std::vector<std::byte> question(sizeof registers + stack.size());
  std::memcpy(question.data(), registers.data(), sizeof registers);
  std::copy(stack.begin(), stack.end(), question.begin() + sizeof registers);
  const auto answer = sandbox_.ask(question, patience);
  if (!answer) return answer.error();
  std::vector<std::uint64_t> addresses(answer->size() / sizeof(std::uint64_t));
  std::memcpy(addresses.data(), answer->data(), addresses.size() * sizeof(std::uint64_t));
  return addresses;
}

}  // namespace karst::kernel
