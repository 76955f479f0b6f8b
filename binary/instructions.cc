// SPDX-License-Identifier: MIT
#include "binary/instructions.h"

#include <Zydis/Decoder.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "binary/elf_file.h"
#include "sandbox/sandbox.h"

namespace karst::binary {
namespace {

constexpr std::size_t kXRaySkip = 9;  // clang's sled: a jump over a NOP of nine bytes

bool counts(const ZydisDecodedInstruction& i) {
  return i.mnemonic != ZYDIS_MNEMONIC_NOP && i.mnemonic != ZYDIS_MNEMONIC_ENDBR64;
}

bool is_jump(const ZydisDecodedInstruction& i) {
  return i.meta.category == ZYDIS_CATEGORY_COND_BR || i.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

bool is_xray_sled(const ZydisDecodedInstruction& i, std::span<const std::byte> code, std::size_t next) {
  if (i.mnemonic != ZYDIS_MNEMONIC_JMP || i.length != 2 || i.raw.imm[0].value.s != std::int64_t{kXRaySkip})
    return false;
  // The long NOP begins with two prefixes; an ordinary jump over nine bytes does not.
  return code.size() - next >= kXRaySkip && code[next] == std::byte{0x66} && code[next + 1] == std::byte{0x0f} &&
         code[next + 2] == std::byte{0x1f};
}

}  // namespace

std::optional<CodeShape> shape_of(std::span<const std::byte> code) {
  ZydisDecoder decoder;
  if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64))) return std::nullopt;
  CodeShape shape;
  for (std::size_t at = 0; at < code.size();) {
    ZydisDecodedInstruction i;
    if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, nullptr, code.data() + at, code.size() - at, &i)))
      return std::nullopt;
    const std::size_t next = at + i.length;
    if (is_jump(i) && i.raw.imm[0].is_relative != ZYAN_FALSE) {
      const std::int64_t target = static_cast<std::int64_t>(next) + i.raw.imm[0].value.s;
      shape.loops = shape.loops || (target >= 0 && target <= static_cast<std::int64_t>(at));
    }
    if (counts(i) && !is_xray_sled(i, code, next)) ++shape.instructions;
    at = next;
  }
  return shape;
}

struct CodeFile::Impl {
  ElfFile file;
  std::span<const std::byte> bytes;
  std::vector<GElf_Phdr> segments;
};

CodeFile::CodeFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CodeFile::CodeFile(CodeFile&&) noexcept = default;
CodeFile& CodeFile::operator=(CodeFile&&) noexcept = default;
CodeFile::~CodeFile() = default;

Result<CodeFile> CodeFile::open(const std::string& path) {
  Descriptor file(sandbox::open_regular(path.c_str()));
  if (file.get() == -EINVAL) return Error{path + " is no program or library"};
  if (!file) return Error{"cannot read " + path + ": " + std::strerror(-file.get())};
  auto impl = std::make_unique<Impl>();
  impl->file = ElfFile(std::move(file), ElfAccess::kMap);
  impl->bytes = impl->file.whole();
  if (impl->bytes.size() < sizeof(Elf64_Ehdr)) return Error{path + " is no program or library"};
  const auto header = impl->file.header();
  const auto segments = impl->file.segments();
  if (!impl->file.is_x86_64() || header->e_phentsize != sizeof(Elf64_Phdr) || segments.size() != header->e_phnum)
    return Error{path + " is no x86-64 program or library, or is damaged"};
  for (const GElf_Phdr& s : segments)
    if (s.p_type == PT_LOAD && (s.p_flags & PF_X) != 0 && s.p_offset <= impl->bytes.size() &&
        s.p_filesz <= impl->bytes.size() - s.p_offset && s.p_vaddr + s.p_filesz >= s.p_vaddr)
      impl->segments.push_back(s);
  return CodeFile(std::move(impl));
}

std::span<const std::byte> CodeFile::code(std::uint64_t begin, std::uint64_t end) const {
  if (begin >= end) return {};
  for (const GElf_Phdr& s : impl_->segments) {
    if (begin < s.p_vaddr || end > s.p_vaddr + s.p_filesz) continue;
    return impl_->bytes.subspan(s.p_offset + (begin - s.p_vaddr), end - begin);
  }
  return {};
}

Result<std::vector<std::optional<CodeShape>>> shapes_of(const std::string& path, std::span<const CodeRange> ranges,
                                                        const std::optional<sandbox::Credentials>& as) {
  const auto answer = sandbox::in_sandbox({.as = as}, [&](sandbox::AnswerWriter& out) {
    const auto file = CodeFile::open(path);
    out.text(file ? std::string() : file.error().message);
    for (const CodeRange& range : ranges) {
      const auto shape = file ? shape_of(file->code(range.begin, range.end)) : std::nullopt;
      out.number(shape ? std::uint64_t{1} | (shape->loops ? 2U : 0U) | std::uint64_t{shape->instructions} << 2 : 0);
    }
  });
  if (!answer) return Error{path + ": " + answer.error().message};
  sandbox::AnswerReader in(*answer);
  if (const std::string_view error = in.text(); !error.empty()) return Error{std::string(error)};
  std::vector<std::optional<CodeShape>> shapes(ranges.size());
  for (auto& shape : shapes)
    if (const std::uint64_t word = in.number(); (word & 1) != 0)
      shape = CodeShape{static_cast<std::uint32_t>(word >> 2), (word & 2) != 0};
  return shapes;
}

}  // namespace karst::binary
