#include "symbols/demangle.h"

#include <libiberty/demangle.h>

#include <cstdlib>
#include <memory>

namespace karst::symbols {

std::string demangle(const char* link_name) {
  if (link_name[0] != '_') return link_name;
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> text(cplus_demangle_v3(link_name, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP));
  return text != nullptr ? std::string(text.get()) : std::string(link_name);
}

}  // namespace karst::symbols
