// SPDX-License-Identifier: MIT
#include "cli/commands/followed.h"

#include <fstream>
#include <iterator>

#include "collect/launch/attach.h"

namespace karst::cli {
namespace {

/// Random bytes that the kernel gave the program are in it: after an exec it is another one.
std::string image_of(const HeldProcess& process) {
  std::ifstream file(process.path("auxv"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

collect::RecordedProcess& Followed::add(const HeldProcess& held, collect::ArenaView arena) {
  all_.push_back({held, image_of(held), false, {collect::History(std::move(arena)), -1, 0, false, -1, {}, {}}});
  return all_.back().process;
}

void Followed::keep_all(const std::shared_ptr<collect::GrowingTrace>& trace) {
  growing_ = trace;
  all_.front().process.history.keep_all(trace);
}

int Followed::drain() {
  collect::History& history = all_.front().process.history;
  const bool any = history.drain_if_due();
  if (growing_->is_flush_due()) {
    history.drain_and_describe({});
    growing_->flush();
    if (growing_->is_file_full()) {
      history.end_file({});
      growing_->end_file();
      history.begin_file();
    }
  }
  return growing_->look_again_after(any);
}

collect::RecordedProcess* Followed::find(pid_t pid) {
  for (One& one : all_)
    if (one.held.number() == pid && one.held.is_there() && !one.replaced) return &one.process;
  const auto held = HeldProcess::open(pid);
  return held ? find(*held) : nullptr;
}

collect::RecordedProcess* Followed::find(const HeldProcess& held) {
  auto attached = collect::attach(held);
  return attached ? &add(held, std::move(attached->arena)) : nullptr;
}

Status Followed::look_for_execs(collect::Triggers& triggers) {
  for (One& one : all_) {
    if (one.replaced) continue;
    const std::string image = image_of(one.held);
    if (image.empty() || image == one.image) continue;
    one.replaced = true;
    triggers.replaced(one.held.number());
    coming_.push_back(one.held);
  }
  for (const HeldProcess& held : std::exchange(coming_, {})) {
    if (!held.is_there()) continue;
    if (find(held) == nullptr)
      coming_.push_back(held);
    else if (Status armed = triggers.arm(held); !armed)
      return armed;
  }
  return Unit{};
}

std::vector<collect::RecordedProcess> Followed::take(bool first_too) {
  std::vector<collect::RecordedProcess> processes;
  for (One& one : all_)
    if (!one.process.moments.empty() || (first_too && &one == &all_.front()))
      processes.push_back(std::move(one.process));
  return processes;
}

}  // namespace karst::cli
