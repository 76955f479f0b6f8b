// Another namespace's: with a libc of its own.
#include <stdlib.h>
#include <string.h>

char* hard_copy(const char* text) { return strdup(text); }
void hard_free(char* text) { free(text); }
