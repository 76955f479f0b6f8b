// SPDX-License-Identifier: MIT
#include "kernel/libtracefs.h"

#include <tracefs.h>
