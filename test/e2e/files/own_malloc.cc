// An allocator of the program's own, which looks at a file when it begins, as mimalloc does: before the constructors
// of libraries of ours, as libstdc++'s own takes memory.
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

alignas(16) char g_heap[8 << 20];
std::size_t g_used = 0;
bool g_ready = false;
int g_begun = 0;

void begin() {
  if (g_ready) return;
  ++g_begun;
  if (access("/proc/self/maps", R_OK) == 0) close(open("/dev/null", O_RDONLY));
  g_ready = true;
}

}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  begin();
  char* const found = g_heap + g_used + 16;
  std::memcpy(found - 16, &size, sizeof size);
  g_used += 16 + (size + 15) / 16 * 16;
  return g_used < sizeof g_heap ? found : nullptr;
}
void free(void*) {}
void* calloc(std::size_t count, std::size_t size) { return malloc(count * size); }  // the heap is zero, and used once
void* realloc(void* old, std::size_t size) {
  void* const found = malloc(size);
  std::size_t had = 0;
  if (old != nullptr) std::memcpy(&had, static_cast<char*>(old) - 16, sizeof had);
  if (old != nullptr) std::memcpy(found, old, had < size ? had : size);
  return found;
}
}

int main() {
  const std::string text(100, 'x');
  std::printf("%zu, begun %d\n", text.size(), g_begun);
  return 0;
}
