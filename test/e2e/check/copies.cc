// A table is handed on by value: each call copies it.
#include <cstring>

namespace {

constexpr int kCells = 50000;

}  // namespace

struct Table {
  Table() { std::memset(cells, 1, sizeof cells); }
  __attribute__((noinline)) Table(const Table& other) { std::memcpy(cells, other.cells, sizeof cells); }
  Table& operator=(const Table&) = delete;
  int cells[kCells];
};

__attribute__((noinline)) long sum_of(Table table, int from) {
  long sum = 0;
  for (int i = from; i < from + 100; ++i) sum += table.cells[i];
  return sum;
}

__attribute__((noinline)) long add_up(const Table& table) {
  long sum = 0;
  for (int i = 0; i < 1000; ++i) sum += sum_of(table, i);
  return sum;
}

int main() {
  static const Table table;
  return add_up(table) == 0 ? 1 : 0;
}
