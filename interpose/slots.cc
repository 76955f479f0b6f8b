// SPDX-License-Identifier: MIT
#include "interpose/slots.h"

#include <dlfcn.h>

#include "format/interpose.h"
#include "interpose/module.h"
#include "interpose/rights.h"

namespace karst::interpose {
namespace {

constexpr uintptr_t kPage = 4096;

template <typename F>
void for_each_module(F f) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* given) {
        (*static_cast<F*>(given))(Module(*info));
        return 0;
      },
      &f);
}

/// Makes a page writable for as long as its slots are changed.
class Writer {
 public:
  explicit Writer(const Rights& rights) : rights_(rights) {}
  ~Writer() { close(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// False: that is not allowed. The slot has another value than `from` then, or is as it was.
  bool change(void** slot, void* from, void* to) {
    if (!open(reinterpret_cast<char*>(slot) - address_of(slot) % kPage)) return false;
    __atomic_compare_exchange_n(slot, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return true;
  }

 private:
  bool open(void* page) {
    if (page == page_) return is_open_;
    close();
    page_ = page;
    const int rights = rights_.of(address_of(page));
    is_open_ = rights >= 0 && (rights & PROT_WRITE) != 0;
    if (is_open_ || rights != PROT_READ) return is_open_;  // another one than RELRO's
    is_open_ = is_changed_ = set(PROT_READ | PROT_WRITE);
    return is_open_;
  }
  void close() {
    if (is_changed_) set(PROT_READ);
    is_changed_ = false;
  }
  bool set(int rights) const { return mprotect(page_, kPage, rights) == 0; }

  const Rights& rights_;
  void* page_ = nullptr;
  bool is_open_ = false;
  bool is_changed_ = false;
};

class Redirecting {
 public:
  Redirecting(StandIn* const* begin, StandIn* const* end, const Rights& rights)
      : begin_(begin), end_(end), writer_(rights) {}

  Redirected done() const { return done_; }

  void redirect(const Module& module) {
    done_.modules += format::module_mark(module.dynamic());
    if (module.is_karst()) return;
    module.for_each_slot([&](uint32_t symbol, Module::Slot slot) {
      void* const bound = __atomic_load_n(slot.at, __ATOMIC_RELAXED);
      const bool is_unbound = slot.is_lazy && module.has_code(address_of(bound));
      for (StandIn* const* one = begin_; one != end_; ++one) {
        const StandIn* const in = *one;
        if (in == nullptr || in->behind == nullptr || (bound != in->behind && !is_unbound)) continue;
        if (strcmp(slot.name, in->name) != 0) continue;
        // An allocator's own calls stay as they are. libc's are those of a user, as for strdup().
        if (!module.is_libc() && module.has(address_of(in->behind))) continue;
        if (is_unbound && !would_be_bound(*in, module.wanted_version(symbol))) continue;
        if (in->version != nullptr && !is_asked_for(*in, module.wanted_version(symbol))) continue;
        ++(writer_.change(slot.at, bound, const_cast<void*>(in->ours())) ? done_.slots : done_.left);
        return;
      }
    });
  }

 private:
  static bool is_asked_for(const StandIn& in, const char* wanted) {
    return wanted == nullptr || strcmp(wanted, in.version) == 0;
  }
  /// dl_iterate_phdr() may be called within its own callback, and by nothing that waits for another lock.
  bool would_be_bound(const StandIn& in, const char* wanted) const {
    bool found = false;
    for_each_module([&](const Module& home) {
      if (home.has(address_of(in.behind))) found = home.defines(in.name, wanted, address_of(in.behind));
    });
    return found;
  }

  StandIn* const* begin_;
  StandIn* const* end_;
  Writer writer_;
  Redirected done_;
};

}  // namespace

bool came_late() {
  bool libc_met = false, is_late = false;
  for_each_module([&](const Module& module) {
    if (module.has(address_of(reinterpret_cast<const void*>(&came_late)))) is_late = libc_met;
    libc_met = libc_met || module.is_libc();
  });
  return is_late;
}

const void* find_behind(const char* name, const char* version, const void* ours, uint32_t& inside) {
  const void* found = version != nullptr ? dlvsym(RTLD_DEFAULT, name, version) : dlsym(RTLD_DEFAULT, name);
  if (found == ours) return nullptr;
  // A program at a fixed address may have its own PLT's entry for a function's address. What it calls lies elsewhere.
  const void* elsewhere = nullptr;
  bool is_programs = false, has_it = false;
  for_each_module([&](const Module& module) {
    if (module.is_program() && module.has(address_of(found))) {
      is_programs = true;
      has_it = module.definition(name, version) != nullptr;
    } else if (is_programs && elsewhere == nullptr && !begins_with(module.file_name(), "libkarst-")) {
      elsewhere = module.definition(name, version);
    }
  });
  if (!is_programs) return found;
  if (has_it) ++inside;
  return has_it ? nullptr : elsewhere;
}

bool is_defined(const char* name) {
  bool found = false;
  for_each_module([&](const Module& module) {
    found = found || (!begins_with(module.file_name(), "libkarst-") && module.definition(name, nullptr) != nullptr);
  });
  return found;
}

Redirected redirect_slots(StandIn* const* begin, StandIn* const* end) {
  const Rights rights;
  if (!rights.is_known()) return {};
  Redirecting redirecting(begin, end, rights);
  for_each_module([&](const Module& module) { redirecting.redirect(module); });
  Redirected done = redirecting.done();
  done.is_known = true;
  return done;
}

}  // namespace karst::interpose
