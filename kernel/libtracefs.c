#include "kernel/libtracefs.h"

#include <tracefs.h>
