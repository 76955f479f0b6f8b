#include "binary/instructions.h"

#include <Zydis/Decoder.h>
#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/descriptor.h"
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
  const std::byte* bytes = nullptr;
  std::size_t size = 0;
  std::vector<Elf64_Phdr> segments;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (bytes != nullptr) munmap(const_cast<std::byte*>(bytes), size);
  }
};

CodeFile::CodeFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CodeFile::CodeFile(CodeFile&&) noexcept = default;
CodeFile& CodeFile::operator=(CodeFile&&) noexcept = default;
CodeFile::~CodeFile() = default;

Result<CodeFile> CodeFile::open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  const Descriptor file(sandbox::open_regular(path.c_str()));
  if (file.get() == -EINVAL) return Error{path + " is no program or library"};
  if (!file) return Error{"cannot read " + path + ": " + std::strerror(-file.get())};
  struct stat status {};
  if (fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_size >= static_cast<off_t>(sizeof(Elf64_Ehdr))) {
    impl->size = static_cast<std::size_t>(status.st_size);
    void* bytes = mmap(nullptr, impl->size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (bytes != MAP_FAILED) impl->bytes = static_cast<const std::byte*>(bytes);
  }
  if (impl->bytes == nullptr) return Error{path + " is no program or library"};
  Elf64_Ehdr header;
  std::memcpy(&header, impl->bytes, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != EM_X86_64 || header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > impl->size ||
      (impl->size - header.e_phoff) / sizeof(Elf64_Phdr) < header.e_phnum)
    return Error{path + " is no x86-64 program or library, or is damaged"};
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, impl->bytes + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && segment.p_offset <= impl->size &&
        segment.p_filesz <= impl->size - segment.p_offset && segment.p_vaddr + segment.p_filesz >= segment.p_vaddr)
      impl->segments.push_back(segment);
  }
  return CodeFile(std::move(impl));
}

std::span<const std::byte> CodeFile::code(std::uint64_t begin, std::uint64_t end) const {
  if (begin >= end) return {};
  for (const Elf64_Phdr& s : impl_->segments) {
    if (begin < s.p_vaddr || end > s.p_vaddr + s.p_filesz) continue;
    return {impl_->bytes + s.p_offset + (begin - s.p_vaddr), static_cast<std::size_t>(end - begin)};
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
