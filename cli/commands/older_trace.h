// SPDX-License-Identifier: MIT
// The file that `karst run` writes: an older trace there is kept until the new one has something in it, and under sudo
// it is the caller's.
#pragma once
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/output_place.h"

namespace karst::cli {

/// An older trace where the new one will be. It has a second name meanwhile, and is renamed to FILE.old when the new
/// one has calls, or back when it has none.
class OlderTrace {
 public:
  explicit OlderTrace(const std::string& file);
  ~OlderTrace();
  OlderTrace(const OlderTrace&) = delete;
  OlderTrace& operator=(const OlderTrace&) = delete;

  void keep() { move_to(place_ ? place_->name() + ".old" : std::string()); }
  /// True if the older trace is in its place again.
  bool put_back() { return move_to(place_ ? place_->name() : std::string()); }

 private:
  int directory() const { return place_->directory().get(); }
  bool move_to(const std::string& name);

  std::optional<OutputPlace> place_;
  std::string held_;  // empty: there is none
};

/// Under sudo what we wrote belongs to who called it: that very file, whatever has its name by now.
void give_to_caller(const Descriptor& written, const std::string& name);

}  // namespace karst::cli
