// SPDX-License-Identifier: MIT
// What include/karst/karst.h has for notes, for those within the runtime who say the same (annotations/).
#pragma once
#include <cstdint>

#include "runtime/modules/note_names.h"

extern "C" {
void karst_api_zone_enter(karst::runtime::NoteName* name);
void karst_api_zone_leave(karst::runtime::NoteName* name);
void karst_api_integer(karst::runtime::NoteName* name, std::int64_t value);
void karst_api_number(karst::runtime::NoteName* name, std::uint64_t bits);
void karst_api_frame(karst::runtime::NoteName* name);
void karst_api_color(std::uint32_t color);
void karst_api_request_begin(std::uint64_t id);
void karst_api_request_end(std::uint64_t id);
int karst_api_thread_set_name(const char* name);
}
