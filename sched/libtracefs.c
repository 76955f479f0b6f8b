#include "sched/libtracefs.h"

#include <tracefs.h>
