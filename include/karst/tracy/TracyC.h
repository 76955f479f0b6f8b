// SPDX-License-Identifier: MIT
#include "tracy/TracyC.h"
