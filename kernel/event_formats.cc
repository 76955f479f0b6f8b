// SPDX-License-Identifier: MIT
#include "kernel/event_formats.h"

#include <fstream>
#include <iterator>

// C without a word for C++.
extern "C" {
#include <event-parse.h>
}

namespace karst::kernel {

EventFormats::EventFormats(const TracefsPlace& place) : events_(place.path() + "/events/"), formats_(tep_alloc()) {
  if (formats_ == nullptr) missing_ = "memory for event formats";
}

EventFormats::~EventFormats() {
  if (formats_ != nullptr) tep_free(formats_);
}

// libtracefs would read all events of a system and all of /proc/kallsyms, which takes longer than many a program.
tep_event* EventFormats::event(const char* system, const char* name) {
  if (formats_ == nullptr) return nullptr;
  std::ifstream in(events_ + system + "/" + name + "/format");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  tep_event* found = nullptr;
  if (!text.empty() && tep_parse_event(formats_, text.data(), text.size(), system) == TEP_ERRNO__SUCCESS)
    found = tep_find_event_by_name(formats_, system, name);
  if (found == nullptr) missing_ = name;
  return found;
}

Field EventFormats::field(tep_event* of, const char* name) {
  const tep_format_field* const found = of != nullptr ? tep_find_any_field(of, name) : nullptr;
  if (found == nullptr || found->offset < 0 || found->size < 0) {
    missing_ = name;
    return {};
  }
  return {static_cast<std::uint32_t>(found->offset), static_cast<std::uint32_t>(found->size)};
}

std::uint16_t EventFormats::id(const tep_event* of) {
  return of != nullptr ? static_cast<std::uint16_t>(of->id) : std::uint16_t{0};
}

}  // namespace karst::kernel
