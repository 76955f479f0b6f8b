int checksum(const char* text);

static int rotate(int value) { return (value << 1) ^ (value >> 3); }

int checksum(const char* text) {
  int sum = 0;
  for (; *text != 0; ++text) sum = rotate(sum) + *text;
  return sum;
}
