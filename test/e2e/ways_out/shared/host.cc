/* The program whose library is a program of the corpus; in C if that is. -DWITH_ARGUMENTS: its main takes them. */
#include "../steps.h"

#ifdef WITH_ARGUMENTS
int corpus_main(int, char**);

UNTRACED int main(int argc, char** argv) { return corpus_main(argc, argv); }
#else
int corpus_main(void);

UNTRACED int main(void) { return corpus_main(); }
#endif
