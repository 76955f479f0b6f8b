// SPDX-License-Identifier: MIT
// karst-tail-calls FILE: what karst-clang runs when it has linked a program or library. Marks, in the tables of clang's
// sleds, the tail calls that pass nothing on the stack (format/sled_note.h), as far as debug information and names
// tell. gcc tells it while it compiles (sibling_call.h). A file without such tables stays as it is; so does one that
// cannot be understood, or written to: its tail calls are jumps then, as they are untraced.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "format/sled_note.h"
#include "patch/elf_image.h"
#include "patch/tail_calls.h"

namespace {

using namespace karst;

constexpr std::uint64_t kSledSize = 11;
constexpr std::uint64_t kMostBeforeSled = 5;

/// A tail call, and the bytes that mark it as one by registers.
struct TailCall {
  std::uint64_t sled = 0;
  std::uint64_t entry = 0;  ///< the entry's sled, or where the function begins
  std::uint64_t place = 0;  ///< ELF address
  std::vector<std::byte> mark;
};

std::vector<std::byte> bytes_of(std::uint16_t unit) {
  return {static_cast<std::byte>(unit), static_cast<std::byte>(unit >> 8)};
}

/// In karst_clang_sleds.
void gather(const patch::ElfImage& image, std::vector<TailCall>& found) {
  const auto table = image.contents("karst_clang_sleds");
  const std::uint64_t at = image.section_address("karst_clang_sleds");
  std::vector<std::uint16_t> units(table.size() / sizeof(std::uint16_t));
  if (!units.empty()) std::memcpy(units.data(), table.data(), units.size() * sizeof units[0]);
  std::uint64_t entry = 0;
  format::walk_sleds(units.data(), units.size(), at, 0, [&](const format::SledRecord& r, std::uint64_t number) {
    if ((r.kind & KARST_SLED_KIND_MASK) == KARST_SLED_ENTRY) entry = r.address;
    if (r.kind != KARST_SLED_TAIL_CALL) return true;
    const std::uint64_t place = at + number * sizeof(std::uint16_t);
    if (units[number] == KARST_SLED_UNIT_JUMP)
      found.push_back({r.address, entry, place, bytes_of(KARST_SLED_UNIT_REGISTERS)});
    if (units[number] == KARST_SLED_UNIT_FAR)
      found.push_back({r.address, entry, place + sizeof(std::uint16_t), bytes_of(KARST_SLED_REGISTER_TAIL_CALL)});
    return true;
  });
}

/// In clang's own table.
void gather_of_clang(const patch::ElfImage& image, std::vector<TailCall>& found) {
  const auto table = image.contents("xray_instr_map");
  std::uint64_t at = image.section_address("xray_instr_map");
  format::XRayRecord record;
  for (std::size_t i = 0; i + sizeof record <= table.size(); i += sizeof record, at += sizeof record) {
    std::memcpy(&record, table.data() + i, sizeof record);
    if (record.version != format::kXRayVersion ||
        static_cast<format::XRayKind>(record.kind) != format::XRayKind::kTailCall)
      continue;
    const std::uint64_t function = at + offsetof(format::XRayRecord, function);
    found.push_back({at + static_cast<std::uint64_t>(record.address),
                     function + static_cast<std::uint64_t>(record.function),
                     at + offsetof(format::XRayRecord, in_registers),
                     {std::byte{1}}});
  }
}

bool write_at(int file, const patch::ElfImage& image, std::uint64_t address, const std::vector<std::byte>& bytes) {
  const auto there = image.from(address);
  if (there.size() < bytes.size()) return true;
  const auto offset = there.data() - image.whole().data();
  return pwrite(file, bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size());
}

int fail(const char* file, const char* why) {
  std::fprintf(stderr, "karst-tail-calls: cannot mark the tail calls of %s: %s\n", file, why);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fail("no file", "it is run by karst-clang alone");
  const Descriptor file(open(argv[1], O_RDWR | O_CLOEXEC));
  if (file.get() < 0) return errno == ENOENT || errno == EACCES ? 0 : fail(argv[1], std::strerror(errno));
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  const auto image = patch::ElfImage::read(file.get());
  if (!image) return 0;
  std::vector<TailCall> calls;
  gather(*image, calls);
  gather_of_clang(*image, calls);
  if (calls.empty()) return 0;
  // Tables say where the entry's sled is, a few bytes behind the function's begin.
  std::map<std::uint64_t, std::uint64_t> begins;
  std::vector<std::uint64_t> symbols;
  for (const auto& symbol : image->functions()) symbols.push_back(symbol.address);
  std::sort(symbols.begin(), symbols.end());
  for (const TailCall& call : calls) {
    const auto behind = std::upper_bound(symbols.begin(), symbols.end(), call.entry);
    if (behind != symbols.begin() && call.entry - behind[-1] <= kMostBeforeSled) begins.emplace(call.entry, behind[-1]);
  }
  std::vector<std::uint64_t> functions;
  functions.reserve(begins.size());
  for (const auto& [entry, begin] : begins) functions.push_back(begin);
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  const std::vector<symbols::ParametersOf> known = patch::parameters_of(*image, functions);
  const patch::Callees callees(*image);
  const auto frames = patch::Frames::read(*image);
  std::optional<patch::StackArguments> arguments;
  if (frames) arguments.emplace(*image, *frames, callees);
  for (const TailCall& call : calls) {
    const auto begin = begins.find(call.entry);
    const bool by_registers =
        begin != begins.end() &&
        known[static_cast<std::size_t>(std::lower_bound(functions.begin(), functions.end(), begin->second) -
                                       functions.begin())]
            .in_registers;
    const std::uint64_t at = call.sled + kSledSize;
    const auto bytes = image->from(at);
    const auto jump = patch::Decoder::of_thread().decode(bytes, at);
    if (jump &&
        patch::may_be_in_place(callees, arguments ? &*arguments : nullptr, *jump, bytes.first(jump->size),
                               by_registers) &&
        !write_at(file.get(), *image, call.place, call.mark))
      return fail(argv[1], std::strerror(errno));
  }
  return 0;
}
