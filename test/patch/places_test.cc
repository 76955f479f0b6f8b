// What every table must be, whatever the module: held against real modules of this machine, and damaged ones.
#include "patch/places.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/sealed_memory.h"
#include "format/patch_table.h"
#include "patch/find.h"
#include "patch/table.h"

namespace karst::patch {
namespace {

using namespace format;

struct Module {
  ElfImage image;
  std::vector<std::byte> table;
  std::vector<Function> functions;
};

/// Calls use(image, frames, code) of the module. False: it cannot be read.
template <typename Use>
bool with_module(int descriptor, Use use) {
  auto image = ElfImage::read(descriptor);
  if (!image) return false;
  const auto frames = Frames::read(*image);
  if (!frames) return false;
  const auto code = Code::decode(*image, *frames);
  if (!code) return false;
  use(*image, *frames, *code);
  return true;
}

/// Null when the module has nothing to patch.
std::unique_ptr<Module> look(int descriptor) {
  std::unique_ptr<Module> module;
  with_module(descriptor, [&](ElfImage& image, const Frames& frames, const Code& code) {
    auto functions = find_places(frames, code, {0}).functions;
    auto table = make_table(image, code, functions);
    module = std::make_unique<Module>(Module{std::move(image), std::move(table), std::move(functions)});
  });
  return module;
}

std::vector<std::string> modules() {
  std::vector<std::string> paths = {"/proc/self/exe", "/bin/sh"};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        if (info->dlpi_name[0] == '/') static_cast<std::vector<std::string>*>(into)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

template <typename Use>
void with_each_module(Use use) {
  for (const std::string& path : modules()) {
    SCOPED_TRACE(path);
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(with_module(file.get(), use));
  }
}

/// The field is that of a jump, a jump on a condition or a call, and not of an access to memory.
bool is_distance_to_code(const PatchJump& j) {
  if (j.field == 0) return false;
  const std::uint8_t code = j.after[j.field - 1];
  return code == 0xe8 || code == 0xe9 || (j.field >= 2 && j.after[j.field - 2] == 0x0f && (code & 0xf0U) == 0x80);
}

/// Each number in the table is in its bounds, jumps do not meet, and stand where the bytes are as the table says.
void expect_sound(const Module& m) {
  PatchTable t;
  ASSERT_GE(m.table.size(), sizeof t);
  std::memcpy(&t, m.table.data(), sizeof t);
  ASSERT_EQ(m.table.size(), sizeof t + t.sleds * sizeof(PatchSled) + t.jumps * sizeof(PatchJump) +
                                t.fixups * sizeof(PatchFixup) + t.detours * sizeof(PatchDetour) + t.code_size +
                                t.text_size);
  const auto* sleds = reinterpret_cast<const PatchSled*>(m.table.data() + sizeof t);
  const auto* jumps = reinterpret_cast<const PatchJump*>(sleds + t.sleds);
  const auto* fixups = reinterpret_cast<const PatchFixup*>(jumps + t.jumps);
  for (std::uint32_t i = 0; i < t.sleds; ++i) EXPECT_TRUE(m.image.is_code(sleds[i].function));
  std::map<std::uint64_t, std::uint32_t> covered;
  for (std::uint32_t i = 0; i < t.jumps; ++i) {
    const PatchJump& j = jumps[i];
    ASSERT_LE(j.size, sizeof j.before);
    EXPECT_LT(j.function, t.functions);
    EXPECT_LT(j.offset, t.code_size);
    const auto bytes = m.image.from(j.address);
    ASSERT_GE(bytes.size(), j.size);
    EXPECT_EQ(std::memcmp(bytes.data(), j.before, j.size), 0);
    EXPECT_TRUE(j.field == kPatchNoField || is_distance_to_code(j)) << std::hex << j.address;
    for (std::uint32_t b = 0; b < j.size; ++b)
      EXPECT_TRUE(covered.emplace(j.address + b, i).second) << std::hex << j.address + b;
  }
  for (std::uint32_t i = 0; i < t.fixups; ++i) EXPECT_LE(fixups[i].offset + 4, t.code_size);
}

TEST(Places, AFrameIsAsDeepAtItsBeginAsLibdwSays) {
  std::size_t shared = 0;
  with_each_module([&](const ElfImage&, const Frames& frames, const Code&) {
    for (std::size_t f = 0; f < frames.all().size(); ++f) {
      const Frame& frame = frames.all()[f];
      shared += frame.first_rules != 0;
      EXPECT_EQ(frames.depth_at_begin(f), frames.depth(frame.code.begin)) << std::hex << frame.code.begin;
    }
  });
  EXPECT_GT(shared, 1000U);
}

TEST(Places, TablesOfRealModulesAreSound) {
  std::size_t patched = 0;
  for (const std::string& path : modules()) {
    SCOPED_TRACE(path);
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(file);
    const auto module = look(file.get());
    ASSERT_NE(module, nullptr);
    expect_sound(*module);
    for (const Function& f : module->functions) patched += f.left_out == LeftOut::kNot;
  }
  EXPECT_GT(patched, 3000U);
}

TEST(Places, NothingGoesIntoAJump) {
  std::size_t all_in_spare_bytes = 0;
  with_each_module([&](const ElfImage&, const Frames& frames, const Code& code) {
    AddressSet inside = code.no_addresses();
    PlaceOptions options;
    // As if each NOP of one byte were a probe's, and some functions had detours.
    for (std::size_t f = 0; f < frames.all().size(); f += 7) options.detours.push_back(frames.all()[f].code.begin);
    for (std::size_t f = 0; f < frames.all().size(); ++f)
      for (const Instruction& i : code.of(f))
        if (i.kind == Kind::kPadding && i.size == 1) options.probes.push_back(frames.all()[f].code.begin + i.offset);
    const Places places = find_places(frames, code, options);
    AddressSet written = code.no_addresses();
    const auto write = [&written](std::uint64_t begin, std::uint64_t size) {
      EXPECT_FALSE(written.has_one(begin, begin + size)) << std::hex << begin;
      written.add(begin, begin + size);
    };
    std::size_t in_spare_bytes = 0;
    const auto look = [&](const Stub& s) {
      const Jump& j = s.jump;
      if (j.how == Jump::How::kRedirect) return;
      if (j.how == Jump::How::kDirect) {
        write(j.at, kJumpSize);
        inside.add(j.at + 1, j.at + kJumpSize);
        return;
      }
      write(j.at, j.short_size());
      write(j.padding, kJumpSize);
      inside.add(j.padding + 1 - j.guard, j.padding + kJumpSize);
      EXPECT_EQ(j.at / 4096, (j.padding + kJumpSize - 1) / 4096);
      const auto distance = static_cast<std::int64_t>(j.padding - (j.at + j.short_size()));
      EXPECT_EQ(distance, static_cast<std::int8_t>(distance));
      in_spare_bytes += j.guard > 1 ? 1 : 0;
    };
    for (const Function& f : places.functions) std::for_each(f.stubs.begin(), f.stubs.end(), look);
    for (const Probe& p : places.probes)
      if (p.left_out == LeftOut::kNot) look(p.stub);
    for (const Detour& d : places.detours)
      if (d.left_out == LeftOut::kNot) look(d.stub);
    for (const Probe& p : places.landings) look(p.stub);
    // A second look, by the instructions alone.
    for (std::size_t f = 0; f < frames.all().size(); ++f)
      for (const Instruction& i : code.of(f))
        EXPECT_FALSE(i.kind != Kind::kRelative && i.target != 0 && inside.has(i.target)) << std::hex << i.target;
    all_in_spare_bytes += in_spare_bytes;
  });
  EXPECT_GT(all_in_spare_bytes, 50U);
}

void* g_place[5];

__attribute__((noinline)) void goes_back(int times) {
  if (times == 1) __builtin_longjmp(g_place, 1);
}

__attribute__((noinline)) int comes_back(int times) {
  if (__builtin_setjmp(g_place) != 0) return times + 1;
  goes_back(times);
  return times;
}

TEST(Places, BothEndsOfJumpsThatCallNothing) {
#ifndef __OPTIMIZE__
  GTEST_SKIP() << "of clang's unoptimised code it is not known";
#endif
  ASSERT_EQ(comes_back(1), 2);
  ASSERT_EQ(comes_back(7), 7);
  std::uint64_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        *static_cast<std::uint64_t*>(into) = info->dlpi_addr;
        return 1;
      },
      &bias);
  const std::uint64_t function = reinterpret_cast<std::uint64_t>(&comes_back) - bias;
  const Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(with_module(file.get(), [&](const ElfImage& image, const Frames& frames, const Code& code) {
    const auto f = frames.find(function);
    ASSERT_TRUE(f);
    const Range own = frames.all()[*f].code;
    std::vector<PatchProbeKind> kinds;
    std::vector<ProbeEntry> probes;
    for (const Probe& p : find_places(frames, code, {0}).landings) {
      probes.push_back({{}, {}, p});
      if (own.contains(p.address)) kinds.push_back(p.kind);
    }
    EXPECT_EQ(kinds, (std::vector{PatchProbeKind::kLands, PatchProbeKind::kSetsPlace}));
    // The jumps to both ends are one change.
    const auto bytes = make_table(image, code, {}, probes);
    PatchTable table;
    std::memcpy(&table, bytes.data(), sizeof table);
    ASSERT_EQ(table.probes, probes.size());
    std::vector<PatchJump> jumps(table.jumps);
    std::memcpy(jumps.data(), bytes.data() + sizeof table + table.probes * sizeof(PatchProbe),
                jumps.size() * sizeof jumps[0]);
    std::vector<std::uint32_t> numbers;
    for (const PatchJump& j : jumps) {
      EXPECT_EQ(probes[j.function].place.kind, PatchProbeKind::kLands);
      if (own.contains(j.address)) numbers.push_back(j.function);
    }
    ASSERT_EQ(numbers.size(), 2U);
    EXPECT_EQ(numbers[0], numbers[1]);
    // Where no function is wanted, nobody asks which calls a jump ends.
    PlaceOptions none;
    none.named.emplace();
    EXPECT_TRUE(find_places(frames, code, none).landings.empty());
  }));
}

TEST(Places, WhereOtherJumpsStandNothingIsExecuted) {
  with_each_module([](const ElfImage&, const Frames& frames, const Code& code) {
    const Places places = find_places(frames, code, {});
    for (const Function& f : places.functions) {
      for (const Stub& s : f.stubs) {
        if (s.jump.how != Jump::How::kByPadding || s.jump.guard <= 1) continue;
        const std::uint64_t from = s.jump.padding - s.jump.guard;
        const auto giver = std::find_if(f.stubs.begin(), f.stubs.end(), [&](const Stub& g) {
          return g.jump.how == Jump::How::kDirect && g.jump.at == from;
        });
        ASSERT_NE(giver, f.stubs.end()) << std::hex << s.jump.padding;
        std::uint64_t end = from;
        for (const Instruction& i : giver->moved) {
          EXPECT_EQ(giver->from + i.offset, end);
          EXPECT_FALSE(i.kind == Kind::kCall || i.kind == Kind::kCallAnywhere || i.may_fault) << std::hex << end;
          end += i.size;
        }
        EXPECT_LE(s.jump.padding + kJumpSize, end) << std::hex << s.jump.padding;
        EXPECT_GE(s.jump.padding, from + kJumpSize) << std::hex << s.jump.padding;
      }
    }
  });
}

/// What is executed where a jump was taken back is the module's own code, while all other jumps still stand.
TEST(Places, JumpsThatStandAloneCanBeTakenBackAlone) {
  std::size_t alone = 0;
  std::size_t not_alone = 0;
  for (const std::string& path : modules()) {
    SCOPED_TRACE(path);
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto m = look(file.get());
    ASSERT_NE(m, nullptr);
    PatchTable t;
    std::memcpy(&t, m->table.data(), sizeof t);
    const auto* jumps = reinterpret_cast<const PatchJump*>(m->table.data() + sizeof t + t.sleds * sizeof(PatchSled));
    std::map<std::uint64_t, const PatchJump*> by_byte;
    for (std::uint32_t i = 0; i < t.jumps; ++i)
      for (std::uint32_t b = 0; b < jumps[i].size; ++b) by_byte[jumps[i].address + b] = &jumps[i];
    for (const Function& f : m->functions) {
      for (const Stub& stub : f.stubs) {
        if (f.left_out != LeftOut::kNot) continue;
        const PatchJump* own = by_byte.at(stub.jump.at);
        EXPECT_EQ(own->address, stub.jump.at);
        (own->alone != 0 ? alone : not_alone) += 1;
        if (own->alone == 0) continue;
        std::uint64_t size = 0;
        for (const Instruction& i : stub.moved) size += i.size;
        for (std::uint64_t b = 0; b < size; ++b) {
          const auto there = by_byte.find(stub.jump.at + b);
          EXPECT_TRUE(there == by_byte.end() || there->second == own) << std::hex << stub.jump.at + b;
        }
      }
    }
    for (std::uint32_t i = 0; i < t.jumps; ++i) EXPECT_LE(jumps[i].alone, 1);
  }
  EXPECT_GT(alone, 10'000U);
  EXPECT_GT(not_alone, 0U);
}

TEST(Places, DetoursBeginWithRoomForAJump) {
  with_each_module([](const ElfImage& image, const Frames& frames, const Code& code) {
    PlaceOptions options{.named = std::vector<std::uint64_t>()};
    for (const Frame& frame : frames.all()) options.detours.push_back(frame.code.begin);
    const Places places = find_places(frames, code, options);
    std::vector<DetourEntry> entries;
    for (const Detour& d : places.detours) entries.push_back({"f" + std::to_string(d.function), d});
    const std::vector<std::byte> table = make_table(image, code, places.functions, {}, entries);
    PatchTable t;
    std::memcpy(&t, table.data(), sizeof t);
    EXPECT_GT(t.detours, places.detours.size() / 2);
    EXPECT_EQ(t.functions, 0U);
    const auto* jumps = reinterpret_cast<const PatchJump*>(table.data() + sizeof t);
    const auto* detours = reinterpret_cast<const PatchDetour*>(table.data() + table.size() - t.text_size - t.code_size -
                                                               t.detours * sizeof(PatchDetour));
    const std::byte* const stubs = table.data() + table.size() - t.text_size - t.code_size;
    const char* const text = reinterpret_cast<const char*>(stubs + t.code_size);
    constexpr unsigned char kNop[] = {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
    constexpr unsigned char kJump[] = {0xff, 0x25, 0, 0, 0, 0};
    for (std::uint32_t i = 0; i < t.detours; ++i) {
      const PatchDetour& d = detours[i];
      ASSERT_EQ(d.offset % kPatchDetourNop, 0U);
      ASSERT_GE(d.offset, kPatchDetourJump);
      EXPECT_EQ(std::memcmp(stubs + d.offset, kNop, sizeof kNop), 0);
      EXPECT_EQ(std::memcmp(stubs + d.offset - kPatchDetourJump + 2, kJump, sizeof kJump), 0);
      EXPECT_EQ(text + d.name, "f" + std::to_string(d.function));
    }
    for (std::uint32_t i = 0; i < t.jumps; ++i) {
      ASSERT_LT(jumps[i].function, t.detours);
      if (jumps[i].field == kPatchNoField) continue;
      EXPECT_EQ(jumps[i].offset, detours[jumps[i].function].offset);
    }
  });
}

TEST(Places, DamagedModulesGiveSoundTablesOrNone) {
  const Descriptor file(open("/bin/sh", O_RDONLY | O_CLOEXEC));
  const auto whole = ElfImage::read(file.get());
  ASSERT_TRUE(whole);
  std::mt19937_64 random(20261122);
  std::size_t read = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    std::vector<std::byte> bytes(whole->whole().begin(), whole->whole().end());
    for (int i = 0; i < 40; ++i) {
      const std::size_t at = round % 2 == 0 ? random() % 4096 : random() % bytes.size();
      bytes[at] = static_cast<std::byte>(random());
    }
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    const Descriptor damaged = sealed_memory("damaged", bytes);
    const auto module = look(damaged.get());
    if (module == nullptr) continue;
    ++read;
    if (!module->image.code().empty()) expect_sound(*module);
  }
  EXPECT_GT(read, 10U);
}

TEST(Places, SetOfAddressesIsASet) {
  constexpr std::uint64_t kLow = 0x401003;
  constexpr std::uint64_t kSize = 300;
  std::mt19937_64 random(20261127);
  for (int round = 0; round < 50; ++round) {
    AddressSet set(kLow, kSize);
    AddressSet more(kLow, kSize);
    std::set<std::uint64_t> naive;
    const auto range = [&] {
      const std::uint64_t begin = kLow - 10 + random() % (kSize + 20);
      return Range{begin, begin + random() % 80};
    };
    for (int i = 0; i < 3; ++i) {
      const Range r = range();
      (i == 0 ? more : set).add(r.begin, r.end);
      for (std::uint64_t at = std::max(r.begin, kLow); at < std::min(r.end, kLow + kSize); ++at) naive.insert(at);
    }
    set.add(more);
    for (std::uint64_t at = kLow - 10; at < kLow + kSize + 10; ++at) ASSERT_EQ(set.has(at), naive.contains(at));
    for (int i = 0; i < 100; ++i) {
      const Range r = range();
      const auto first = naive.lower_bound(r.begin);
      ASSERT_EQ(set.has_one(r.begin, r.end), first != naive.end() && *first < r.end);
    }
  }
}

TEST(Places, CodeThatLiesFarApartIsRefused) {
  const Descriptor file(open("/bin/sh", O_RDONLY | O_CLOEXEC));
  const auto whole = ElfImage::read(file.get());
  ASSERT_TRUE(whole);
  std::vector<std::byte> bytes(whole->whole().begin(), whole->whole().end());
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  Elf64_Phdr last;
  std::size_t at = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_LOAD) continue;
    last = segment;
    at = header.e_phoff + i * sizeof segment;
  }
  last.p_flags |= PF_X;
  last.p_vaddr += std::uint64_t{1} << 31;
  std::memcpy(bytes.data() + at, &last, sizeof last);
  const Descriptor apart = sealed_memory("apart", bytes);
  const auto found = find_in_file(apart.get(), {}, std::nullopt);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "its code lies more than 1 GiB apart");
}

TEST(Places, WhatIsNoProgramIsRefused) {
  const std::string text = "#!/bin/sh\n";
  const Descriptor file = sealed_memory("text", std::as_bytes(std::span(text)));
  const auto found = find_in_file(file.get(), {}, std::nullopt);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "it is no x86-64 program or library, or is damaged");
}

}  // namespace
}  // namespace karst::patch
