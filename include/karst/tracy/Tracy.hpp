#include "tracy/Tracy.hpp"
