#include "tracy/TracyC.h"
