/* Writes a file by what of stdio formats, and reads it back. Prints how long it is. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL __attribute__((noinline, noclone))

static void by_list(FILE* stream, const char* format, ...) {
  va_list rest;
  va_start(rest, format);
  vfprintf(stream, format, rest);
  va_end(rest);
}

CALL void write_it(const char* path) {
  FILE* file = fopen(path, "w");
  for (int i = 0; i < 50; ++i) {
    fprintf(file, "%d %s %5.2f %c %ld %x\n", i, "some words", i / 3.0, 'a' + i % 26, 1L << i, i);
    by_list(file, "%d %d %d %d %d %d %d %d %g\n", 1, 2, 3, 4, 5, 6, 7, i, 1e300 / (i + 1));
  }
  fputs("a text\n", file);
  fwrite("12345\n", 3, 2, file);
  fclose(file);
}
CALL void append_it(const char* path) {
  FILE* file = freopen(path, "a", stdout);
  printf("%s %d\n", "by printf", 5);
  puts("by puts");
  fflush(file);
  dprintf(fileno(file), "%s\n", "by dprintf");
  fclose(file);
}
CALL long read_it(const char* path) {
  FILE* file = fopen(path, "r");
  int first = 0, last = 0;
  char word[20] = "";
  long sum = fscanf(file, "%d %19s", &first, word);
  sum += fscanf(file, " words %*f %*c %*d %*x %d", &last);
  fseek(file, 0, SEEK_END);
  sum += 1000 * ftell(file);
  fclose(file);
  return sum;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int out = dup(1);
  write_it(argv[1]);
  append_it(argv[1]);
  const long sum = read_it(argv[1]);
  dprintf(out, "%ld\n", sum);
  return 0;
}
