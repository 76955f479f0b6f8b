// SPDX-License-Identifier: MIT
// The instruction takes three cycles and can begin each cycle: three thirds of a piece are summed side by side, and
// joined by the algebra of CRCs: appending n zero bytes is a linear map of the 32 bits (Mark Adler's crc32_combine in
// zlib has the method).
#include "runtime/snapshots/checksum.h"

#include "arch/cpu.h"
#include "format/checksum.h"
#include "runtime/system/memory.h"

namespace karst::runtime {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78U;  // reflected

/// A linear map of 32 bits: what becomes of each.
struct Map {
  std::uint32_t of_bit[32];
  constexpr std::uint32_t operator()(std::uint32_t bits) const {
    std::uint32_t sum = 0;
    for (int i = 0; bits != 0; ++i, bits >>= 1)
      if ((bits & 1) != 0) sum ^= of_bit[i];
    return sum;
  }
};

constexpr Map twice(const Map& map) {
  Map made{};
  for (int i = 0; i < 32; ++i) made.of_bit[i] = map(map.of_bit[i]);
  return made;
}

/// Appending 2^k zero bytes.
struct Zeros {
  static constexpr int kPowers = 32;
  Map append[kPowers];
  constexpr Zeros() : append{} {
    Map bit{};
    bit.of_bit[0] = kPolynomial;
    for (int i = 1; i < 32; ++i) bit.of_bit[i] = std::uint32_t{1} << (i - 1);
    append[0] = twice(twice(twice(bit)));
    for (int k = 1; k < kPowers; ++k) append[k] = twice(append[k - 1]);
  }
  constexpr std::uint32_t operator()(std::uint32_t crc, std::uint64_t bytes) const {
    for (int k = 0; k < kPowers && bytes != 0; ++k, bytes >>= 1)
      if ((bytes & 1) != 0) crc = append[k](crc);
    return crc;
  }
};
constexpr Zeros kZeros;

constexpr std::size_t kThird = kEventsSize / 3;
static_assert(kEventsSize % (3 * sizeof(std::uint64_t)) == 0);

/// Appending kThird zero bytes, by bytes of the sum.
struct ThirdTable {
  std::uint32_t entry[4][256];
  constexpr ThirdTable() : entry{} {
    for (int i = 0; i < 32; ++i) {
      const std::uint32_t mapped = kZeros(std::uint32_t{1} << i, kThird);
      for (std::uint32_t n = 0; n < 256; ++n)
        if ((n >> i % 8 & 1) != 0) entry[i / 8][n] ^= mapped;
    }
  }
};
constexpr ThirdTable kThirdTable;

std::uint32_t append_third(std::uint32_t c) {
  return kThirdTable.entry[0][c & 255] ^ kThirdTable.entry[1][c >> 8 & 255] ^ kThirdTable.entry[2][c >> 16 & 255] ^
         kThirdTable.entry[3][c >> 24];
}

bool has_crc_instruction() {
  static std::uint32_t s_known;  // 1: no, 2: yes
  if (load(s_known) == 0) {
    store(s_known, arch::has_crc32c() ? 2U : 1U);
  }
  return load(s_known) == 2;
}

void add(std::uint64_t& c, std::uint64_t word) { c = arch::crc32c_of_word(c, word); }

/// kEventsSize bytes, each word of which is given to `use` as well.
template <typename Use>
std::uint32_t add_thirds(std::uint32_t begin, const unsigned char* from, Use&& use) {
  std::uint64_t a = begin;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  for (std::size_t i = 0; i < kThird; i += sizeof(std::uint64_t)) {
    const std::uint64_t x = word_at(from + i);
    const std::uint64_t y = word_at(from + kThird + i);
    const std::uint64_t z = word_at(from + 2 * kThird + i);
    add(a, x);
    add(b, y);
    add(c, z);
    use(i, x, y, z);
  }
  const std::uint32_t two = append_third(static_cast<std::uint32_t>(a)) ^ static_cast<std::uint32_t>(b);
  return append_third(two) ^ static_cast<std::uint32_t>(c);
}

}  // namespace

std::uint32_t checksum(const void* data, std::size_t size, std::uint32_t crc) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint32_t c32 = ~crc;
  if (!has_crc_instruction()) return ~format::detail::crc32c_portable(c32, p, size);
  for (; size >= kEventsSize; size -= kEventsSize, p += kEventsSize)
    c32 = add_thirds(c32, p, [](std::size_t, std::uint64_t, std::uint64_t, std::uint64_t) {});
  std::uint64_t c = c32;
  for (; size >= 8; size -= 8, p += 8) add(c, word_at(p));
  c32 = static_cast<std::uint32_t>(c);
  for (; size != 0; --size, ++p) c32 = arch::crc32c_of_byte(c32, *p);
  return ~c32;
}

std::uint32_t joined_checksum(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) {
  return kZeros(first, second_size) ^ second;
}

std::uint32_t copy_events(void* to, const void* from, std::uint32_t crc) {
  if (!has_crc_instruction()) {
    copy(to, from, kEventsSize);
    return checksum(to, kEventsSize, crc);
  }
  auto* out = static_cast<unsigned char*>(to);
  return ~add_thirds(~crc, static_cast<const unsigned char*>(from),
                     [out](std::size_t i, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
                       __builtin_memcpy(out + i, &x, sizeof x);
                       __builtin_memcpy(out + kThird + i, &y, sizeof y);
                       __builtin_memcpy(out + 2 * kThird + i, &z, sizeof z);
                     });
}

}  // namespace karst::runtime
