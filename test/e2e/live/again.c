// again.cc for programs in C.
#include "again.cc"
