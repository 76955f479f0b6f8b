// Tables of a process that lie: chains of names without an end, lists that lead back to themselves, sizes of anything.
// The process at hand plays it.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "collect/inject/memory.h"

namespace karst::collect {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSymbols = 200'000;
constexpr std::size_t kImageSize = 16 << 20;

std::uint32_t hash_of(const std::string& name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

/// A library in memory, with a chain of kSymbols names that all have the hash of `name`. The last one is it.
class Image {
 public:
  explicit Image(const std::string& name, bool has_end) {
    bytes_ =
        static_cast<std::byte*>(mmap(nullptr, kImageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phoff = sizeof header;
    header.e_phnum = 2;
    put(0, header);
    put(header.e_phoff, Elf64_Phdr{PT_LOAD, PF_R, 0, 0, 0, kImageSize, kImageSize, 4096});
    put(header.e_phoff + sizeof(Elf64_Phdr), Elf64_Phdr{PT_DYNAMIC, PF_R, 0, kDynamic, 0, 256, 256, 8});
    const Elf64_Dyn entries[] = {{DT_SYMTAB, {base() + kTable}},  {DT_STRTAB, {base() + kNames}},
                                 {DT_STRSZ, {~std::uint64_t{0}}}, {DT_GNU_HASH, {base() + kHashes}},
                                 {DT_JMPREL, {base() + kNames}},  {DT_PLTRELSZ, {std::uint64_t{1} << 62}}};
    put(kDynamic, entries);
    const std::uint32_t table[] = {1, 1, 1, 0, 0, 0, 1};  // buckets, first, words, shift, a word, the bucket
    put(kHashes, table);
    for (std::uint32_t i = 1; i <= kSymbols; ++i) {
      const bool last = i == kSymbols;
      put(kHashes + sizeof table + 4 * (i - 1), (hash_of(name) & ~1U) | (last && has_end ? 1U : 0U));
      Elf64_Sym symbol{};
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
      symbol.st_shndx = 1;
      symbol.st_value = kData;
      symbol.st_name = has_end && i == 3 ? 100 : 0;
      put(kTable + i * sizeof symbol, symbol);
    }
    std::memcpy(bytes_ + kNames, "another", 8);
    std::memcpy(bytes_ + kNames + 100, name.c_str(), name.size() + 1);
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() { munmap(bytes_, kImageSize); }

  static constexpr std::uint64_t kDynamic = 0x400, kData = 0x800, kHashes = 0x1000, kTable = 0x200000,
                                 kNames = 0xf00000;
  std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(bytes_); }
  template <typename T>
  void put(std::uint64_t at, const T& value) {
    std::memcpy(bytes_ + at, &value, sizeof value);
  }

 private:
  std::byte* bytes_;
};

class ForeignModuleTest : public testing::Test {
 protected:
  ForeignMemory memory_ = std::move(*ForeignMemory::open(*HeldProcess::open(getpid())));
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  /// Under sanitizers on a busy machine, too. What is not bounded takes hours.
  void in_time() const { EXPECT_LT(std::chrono::steady_clock::now() - begin_, 60s); }
};

TEST_F(ForeignModuleTest, FindsWhatIsThere) {
  const Image image("wanted", true);
  const auto module = ForeignModule::of(memory_, image.base());
  ASSERT_TRUE(module);
  EXPECT_EQ(module->find(memory_, "wanted"), image.base() + Image::kData);
  EXPECT_EQ(module->find(memory_, "not there"), 0U);
}

TEST_F(ForeignModuleTest, ChainsWithoutAnEndEnd) {
  const Image image("wanted", false);
  for (int i = 0; i < 20'000; ++i) {
    const auto module = ForeignModule::of(memory_, image.base());
    EXPECT_EQ(module ? module->find(memory_, "wanted") : 0, 0U);
  }
  in_time();
}

TEST_F(ForeignModuleTest, ListsOfModulesThatLeadBackEnd) {
  Image image("_r_debug", true);
  image.put(Image::kData + 8, image.base() + Image::kData + 64);  // r_map
  const std::uint64_t self[] = {0, 0, 7, image.base() + Image::kData + 64};
  image.put(Image::kData + 64, self);
  const std::vector<Mapping> mappings = {
      {image.base(), image.base() + kImageSize, 0, 0, "r-xp", "/lib/ld-linux-x86-64.so.2"}};
  for (int i = 0; i < 1000; ++i) {
    const auto found = own_modules(memory_, mappings);
    if (!found) break;
    EXPECT_LE(found->size(), 10'000U);
  }
  in_time();
}

TEST_F(ForeignModuleTest, TablesOfAnySizeAreNotRead) {
  const Image image("wanted", true);
  std::uint64_t most = 1 << 20;
  ForeignModule::of(memory_, image.base())->for_each_slot(memory_, most, [](std::string_view, std::uint64_t) {});
  EXPECT_LE(most, 1U << 20);
  in_time();
}

TEST_F(ForeignModuleTest, ThousandsOfHeadersAreNoModule) {
  Image image("wanted", true);
  image.put(offsetof(Elf64_Ehdr, e_phnum), std::uint16_t{65535});
  EXPECT_FALSE(ForeignModule::of(memory_, image.base()));
}

}  // namespace
}  // namespace karst::collect
