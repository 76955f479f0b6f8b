// Fields of CSV for commands whose answer is no relation yet.
#pragma once
#include "answers/data.h"

namespace karst::cli {

using answers::csv_field;

}  // namespace karst::cli
