/* SPDX-License-Identifier: MIT */
/* A small interpreter whose functions are seen by Karst: karst/function.h.
 *
 *   cc -O2 -I include examples/interpreter/calc.c -o calc && karst run ./calc examples/interpreter/fib.calc
 *
 * A program is one function a line, each an expression in prefix notation:
 *
 *   fib n = ? < n 2 n + fib - n 1 fib - n 2
 *   main = fib 20
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "karst/function.h"

struct function {
  char name[32];
  char parameter[32]; /* empty: it takes none */
  const char* body;
  const char* file;
  uint32_t line;
  uint32_t karst; /* 0: not known to Karst yet, or nobody listens */
};

static struct function functions[64];
static int function_count;

static void fail(const char* what, const char* where) {
  fprintf(stderr, "calc: %s: %s\n", what, where);
  exit(1);
}

/* The next word of a text, which is moved on behind it. */
static void next_word(const char** text, char* word, size_t size) {
  size_t n = 0;
  while (isspace((unsigned char)**text)) ++*text;
  while (**text != '\0' && !isspace((unsigned char)**text)) {
    if (n + 1 < size) word[n++] = **text;
    ++*text;
  }
  word[n] = '\0';
}

static struct function* find(const char* name) {
  for (int i = 0; i < function_count; ++i)
    if (strcmp(functions[i].name, name) == 0) return &functions[i];
  return NULL;
}

static long evaluate(const char** text, const struct function* in, long argument, int is_wanted);

/* The function is entered when it is first called, and says when it begins and ends. */
static long call(struct function* f, long argument) {
  if (f->karst == 0) f->karst = karst_function(f->name, f->file, f->line);
  karst_enter(f->karst);
  const char* body = f->body;
  const long value = evaluate(&body, f, argument, 1);
  karst_exit(f->karst);
  return value;
}

static long operate(char operation, long a, long b) {
  switch (operation) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    default:
      return a < b;
  }
}

/* What is not wanted is read over: the branch that is not taken. */
static long evaluate(const char** text, const struct function* in, long argument, int is_wanted) {
  char word[32];
  next_word(text, word, sizeof word);
  if (word[0] == '?') {
    const long condition = evaluate(text, in, argument, is_wanted);
    const long yes = evaluate(text, in, argument, is_wanted && condition != 0);
    const long no = evaluate(text, in, argument, is_wanted && condition == 0);
    return condition != 0 ? yes : no;
  }
  if (word[0] != '\0' && word[1] == '\0' && strchr("+-*<", word[0]) != NULL) {
    const long a = evaluate(text, in, argument, is_wanted);
    const long b = evaluate(text, in, argument, is_wanted);
    return operate(word[0], a, b);
  }
  if (isdigit((unsigned char)word[0])) return atol(word);
  if (in->parameter[0] != '\0' && strcmp(word, in->parameter) == 0) return argument;
  struct function* f = find(word);
  if (f == NULL) fail("no such function", word);
  const long given = f->parameter[0] != '\0' ? evaluate(text, in, argument, is_wanted) : 0;
  return is_wanted ? call(f, given) : 0;
}

static void define(const char* line, const char* file, uint32_t number) {
  char equals[32];
  if (function_count == sizeof functions / sizeof functions[0]) fail("too many functions", file);
  struct function* f = &functions[function_count++];
  next_word(&line, f->name, sizeof f->name);
  next_word(&line, f->parameter, sizeof f->parameter);
  if (strcmp(f->parameter, "=") == 0) {
    f->parameter[0] = '\0';
  } else {
    next_word(&line, equals, sizeof equals);
    if (strcmp(equals, "=") != 0) fail("a function is NAME [PARAMETER] = EXPRESSION", f->name);
  }
  f->body = strdup(line);
  f->file = file;
  f->line = number;
}

int main(int count, char** arguments) {
  char line[1024];
  FILE* file = count == 2 ? fopen(arguments[1], "r") : NULL;
  if (file == NULL) fail("cannot read the program", count == 2 ? arguments[1] : "none given");
  for (uint32_t number = 1; fgets(line, sizeof line, file) != NULL; ++number)
    if (line[0] != '\n' && line[0] != '#') define(line, arguments[1], number);
  fclose(file);
  struct function* start = find("main");
  if (start == NULL) fail("there is no main", arguments[1]);
  printf("%ld\n", call(start, 0));
  return 0;
}
