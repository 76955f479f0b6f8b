// What is known by its shape is what Zydis says of the same bytes: in real modules, and in bytes that are none.
#include "patch/instruction.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "patch/elf_image.h"
#include "patch/frames.h"

namespace karst::patch {
namespace {

void expect_same(const std::optional<Instruction>& got, const std::optional<Instruction>& wanted, std::uint64_t at) {
  ASSERT_EQ(got.has_value(), wanted.has_value()) << std::hex << at;
  if (!wanted) return;
  const auto all = [](const Instruction& i) {
    return std::tuple(i.target, i.offset, unsigned{i.size}, unsigned{i.field}, i.kind, bool{i.may_fault},
                      bool{i.by_frame}, bool{i.ends_flow}, bool{i.saves_stack_pointer}, bool{i.reads_flags},
                      bool{i.writes_flags});
  };
  ASSERT_EQ(all(*got), all(*wanted)) << std::hex << at;
}

/// From `at` on, one behind the other; a byte that begins none is passed over. Returns how many there are.
std::size_t expect_same_everywhere(Decoder& decoder, std::span<const std::byte> bytes, std::uint64_t address) {
  Decoder zydis(0);
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size() && !testing::Test::HasFatalFailure(); ++count) {
    const auto rest = bytes.subspan(at, std::min<std::size_t>(bytes.size() - at, 20));
    const auto wanted = zydis.decode(rest, address + at);
    expect_same(decoder.decode(rest, address + at), wanted, address + at);
    expect_same(decoder.decode(rest, address + at), wanted, address + at);
    at += wanted ? wanted->size : 1;
  }
  return count;
}

std::set<std::string> modules_of_this_process() {
  std::set<std::string> paths = {"/proc/self/exe"};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        if (info->dlpi_name[0] == '/') static_cast<std::set<std::string>*>(into)->insert(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

TEST(Decoder, SaysOfRealCodeWhatZydisSays) {
  Decoder& decoder = Decoder::of_thread();
  std::size_t count = 0;
  for (const std::string& path : modules_of_this_process()) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto image = ElfImage::read(file.get());
    ASSERT_TRUE(image) << path;
    const auto frames = Frames::read(*image);
    if (!frames) continue;
    for (const Frame& frame : frames->all())
      count += expect_same_everywhere(decoder, image->from(frame.code.begin).first(frame.code.end - frame.code.begin),
                                      frame.code.begin);
  }
  EXPECT_GT(count, 100000U);
}

TEST(Decoder, SaysOfAnyBytesWhatZydisSays) {
  std::mt19937_64 random(29);
  std::vector<std::byte> bytes(std::size_t{1} << 20);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  // Prefixes, escapes and opcodes that are rare among random bytes.
  const unsigned char rare[] = {0x66, 0xf2, 0xf3, 0x2e, 0x64, 0x65, 0x67, 0xf0, 0x48, 0x4c, 0x0f, 0x0f,
                                0x38, 0x3a, 0xc4, 0xc5, 0x62, 0x8f, 0xc7, 0xf8, 0xe8, 0xe9, 0xeb, 0x74};
  for (std::size_t i = 0; i < bytes.size(); i += 1 + random() % 4) bytes[i] = std::byte{rare[random() % sizeof rare]};
  for (const std::size_t most_nodes : {Decoder::kMostNodes, std::size_t{40}, std::size_t{1}}) {
    Decoder decoder(most_nodes);
    expect_same_everywhere(decoder, bytes, 0x401000);
  }
}

TEST(Decoder, SeesWhereBytesEnd) {
  const std::vector<std::vector<int>> instructions = {{0xe8, 1, 2, 3, 4},
                                                      {0x48, 0x8b, 0x44, 0x24, 8},
                                                      {0x0f, 0x84, 1, 0, 0, 0},
                                                      {0xc3},
                                                      {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}};
  Decoder decoder;
  for (const auto& instruction : instructions) {
    std::vector<std::byte> bytes(instruction.size());
    std::transform(instruction.begin(), instruction.end(), bytes.begin(), [](int b) { return std::byte(b); });
    ASSERT_TRUE(decoder.decode(bytes, 0));
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(decoder.decode(std::span(bytes).first(size), 0)) << size;
  }
}

TEST(Decoder, KnowsDistancesOfWhatItHasSeen) {
  Decoder decoder;
  const auto target = [&](std::vector<unsigned char> bytes, std::uint64_t address) {
    return decoder.decode(std::as_bytes(std::span(bytes)), address)->target;
  };
  EXPECT_EQ(target({0xe8, 0xfb, 0xff, 0xff, 0xff}, 0x1000), 0x1000U);
  EXPECT_EQ(target({0xe8, 0x10, 0, 0, 0}, 0x2000), 0x2015U);
  EXPECT_EQ(target({0xeb, 0xfe}, 0x1000), 0x1000U);
  EXPECT_EQ(target({0xeb, 0x10}, 0x2000), 0x2012U);
  EXPECT_EQ(target({0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff}, 0x1000), 0x1000U);
  EXPECT_EQ(target({0x48, 0x8d, 0x05, 1, 0, 0, 0}, 0x2000), 0x2008U);
  // Of what stands at %fs:0x28 it is known that it does not fault, and of nothing else there.
  const auto may_fault = [&](unsigned char place) {
    const unsigned char bytes[] = {0x64, 0x48, 0x8b, 0x04, 0x25, place, 0, 0, 0};
    return decoder.decode(std::as_bytes(std::span(bytes)), 0)->may_fault;
  };
  EXPECT_FALSE(may_fault(0x28));
  EXPECT_TRUE(may_fault(0x30));
}

}  // namespace
}  // namespace karst::patch
