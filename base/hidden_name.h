// SPDX-License-Identifier: MIT
#pragma once
#include <string>

namespace karst {

/// `.NAME.abcdefgh`: a name at random beside `name`, for what is not whole yet. Fits where `name` does.
std::string hidden_name(const std::string& name);

}  // namespace karst
