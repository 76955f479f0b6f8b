// Runs a fuzz target without libFuzzer, so that the tests try it: first all seeds and all inputs that once broke
// something, then mutations of them. The mutations are the same in each run; only their number depends on the machine.
//   fuzz_NAME [--runs N] [--seconds S] FILE_OR_DIRECTORY...
// A sanitizer's report or an abort is the failure; the first line printed names the file that has the input.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

using Input = std::vector<std::uint8_t>;

extern "C" {
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
__attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                                          unsigned seed);
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
}

namespace {

constexpr std::size_t kMaxInput = 64 << 10;
std::mt19937 g_random(1);
std::string g_kept;

std::size_t below(std::size_t bound) { return bound == 0 ? 0 : g_random() % bound; }

/// Numbers at which bounds are wrong by one.
std::uint64_t interesting() {
  constexpr std::uint64_t kNumbers[] = {0, 1, 7, 8, 127, 128, 255, 4095, 4096, 65535, 65536, 0x7fffffff, 0x80000000};
  const std::uint64_t number = kNumbers[below(std::size(kNumbers))];
  return below(4) == 0 ? ~number : number;
}

void run(const Input& input) {
  // Whoever looks for the input behind a crash finds it here.
  std::ofstream(g_kept, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  // A copy of exactly this size, so that a read beyond it is noticed.
  const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), exact.get());
  LLVMFuzzerTestOneInput(exact.get(), input.size());
}

Input mutate(const std::vector<Input>& seeds) {
  Input input = seeds[below(seeds.size())];
  std::size_t size = input.size();
  input.resize(std::max(kMaxInput, 2 * size));
  for (std::size_t rounds = 1 + below(4); rounds-- != 0;) {
    if (below(8) == 0) {  // the rest of another one
      const Input& other = seeds[below(seeds.size())];
      const std::size_t from = below(other.size());
      const std::size_t rest = std::min(other.size() - from, input.size());
      size = std::min(below(size + 1), input.size() - rest);
      std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), rest,
                  input.begin() + static_cast<std::ptrdiff_t>(size));
      size += rest;
    }
    size = LLVMFuzzerCustomMutator != nullptr
               ? LLVMFuzzerCustomMutator(input.data(), size, input.size(), static_cast<unsigned>(g_random()))
               : LLVMFuzzerMutate(input.data(), size, input.size());
  }
  input.resize(size);
  return input;
}

void add(std::vector<Input>& seeds, const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  } else {
    files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "%s cannot be read\n", file.c_str());
      std::exit(2);
    }
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  if (size == 0) {
    if (max_size == 0) return 0;
    data[0] = static_cast<std::uint8_t>(g_random());
    return 1;
  }
  const std::size_t at = below(size);
  const std::size_t length = 1 + below(std::min<std::size_t>(size - at, 32));
  switch (below(6)) {
    case 0:
      data[at] ^= static_cast<std::uint8_t>(1U << below(8));
      return size;
    case 1:
      data[at] = static_cast<std::uint8_t>(g_random());
      return size;
    case 2: {  // a number
      const std::uint64_t number = interesting();
      std::memcpy(data + at, &number, std::min<std::size_t>(std::size_t{1} << below(4), size - at));
      return size;
    }
    case 3:  // shorter
      if (below(4) == 0) return at;
      std::memmove(data + at, data + at + length, size - at - length);
      return size - length;
    case 4: {  // a piece twice
      const std::size_t more = std::min(length, max_size - size);
      std::memmove(data + at + more, data + at, size - at);
      return size + more;
    }
    default:  // a piece elsewhere
      std::memmove(data + below(size - length + 1), data + at, length);
      return size;
  }
}

int main(int argc, char** argv) {
  std::uint64_t runs = 20'000;
  double seconds = 1.0;
  std::vector<Input> seeds;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
      runs = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::strtod(argv[++i], nullptr);
    } else {
      add(seeds, argv[i]);
    }
  }
  g_kept = (std::filesystem::temp_directory_path() / ("karst-fuzz-" + std::to_string(getpid()))).string();
  std::fprintf(stderr, "the input at work is in %s\n", g_kept.c_str());
  for (const Input& seed : seeds) run(seed);
  if (seeds.empty()) seeds.emplace_back();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::uint64_t done = 0;
  for (; done != runs && std::chrono::steady_clock::now() < end; ++done) run(mutate(seeds));
  std::filesystem::remove(g_kept);
  std::printf("%zu seeds and %llu mutations\n", seeds.size(), static_cast<unsigned long long>(done));
  return 0;
}
