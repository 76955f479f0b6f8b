// SPDX-License-Identifier: MIT
#include "collect/launch/plain_process.h"

#include <poll.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "collect/inject/load.h"
#include "collect/launch/session.h"
#include "format/option_text.h"

namespace karst::collect {
namespace {

/// Answers the process while a thread of it asks; our own thread follows that one meanwhile.
class Answering {
 public:
  Answering(Session& session, PlainPrograms& programs)
      : thread_([this, &session, &programs] { run(session, programs); }) {}
  ~Answering() {
    over_ = true;
    thread_.join();
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  bool heard() const { return heard_; }

 private:
  void run(Session& session, PlainPrograms& programs) {
    constexpr int kLookEveryMs = 10;
    while (!over_) {
      std::vector<pollfd> descriptors;
      session.add_descriptors(descriptors);
      if (poll(descriptors.data(), descriptors.size(), kLookEveryMs) <= 0) continue;
      for (auto arrivals = session.take(); !arrivals.empty(); arrivals = session.take())
        for (Arrival& arrival : arrivals) {
          if (arrival.kind != format::HelloKind::kPatches) continue;
          heard_ = true;
          programs.answer(std::move(arrival));
        }
    }
  }
  std::atomic<bool> over_{false};
  std::atomic<bool> heard_{false};
  std::thread thread_;
};

/// Has the process call `function` of libkarst's, which asks for tables.
Status fetch(const HeldProcess& process, const std::string& function, format::RuntimeOptions options,
             PlainPrograms& programs) {
  auto session = Session::listen();
  if (!session) return session.error();
  const Answering answering(*session, programs);
  options.session = session->key();
  Status fetched = call_runtime(process, function, format::options_text(options));
  // Who got no answer says the same as who got none that is of use.
  if (!fetched && !answering.heard() && fetched.error().message == "none of its functions can be patched")
    return Error{"it cannot ask karst for the places (has it a network namespace of its own?)"};
  return fetched;
}

}  // namespace

std::string stack_switcher(const PlainPrograms& programs) {
  for (const PlainPrograms::Module& module : programs.modules())
    if (!module.stack_switcher.empty()) return module.stack_switcher;
  return {};
}

Result<PatchedCode> patch_process(const HeldProcess& process, uid_t user, const PlainAttach& how,
                                  PlainPrograms& programs) {
  programs.prepare(process, user);
  format::RuntimeOptions options = how.options;
  how.choice.ask_by(options);
  options.stacks = how.stacks.value_or(!stack_switcher(programs).empty());
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  if (const Status fetched = fetch(process, "karst_attach_fetch", options, programs); !fetched) return fetched.error();
  auto calls = Clock::now() - began;
  auto patched = write_jumps(process);
  if (!patched) return patched.error();
  if (patched->functions == 0 && patched->left != 0)
    return Error{"none of its " + std::to_string(patched->left) +
                 " functions could be patched: threads stand in all of them, or its code is not as in its file"};
  const auto enters = Clock::now();
  if (const Status entered = call_runtime(process, "karst_attach_enter", ""); !entered) return entered.error();
  calls += Clock::now() - enters;
  patched->calls_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(calls).count());
  return patched;
}

Status bring_detours(const HeldProcess& process, uid_t user, const std::vector<std::string>& functions) {
  const auto there = detours_of(process);
  if (!there) return there.error();
  if (there->any) return Unit{};
  PlainChoice choice;
  choice.detours = functions;
  PlainPrograms programs(std::move(choice));
  programs.prepare(process, user);
  if (programs.modules().empty()) return Unit{};
  const PlainPrograms::Module& program = programs.modules().front();
  if (!program.problem.empty()) return Error{program.problem};
  for (const patch::DetourOutcome& detour : program.detours)
    if (detour.left_out != patch::LeftOut::kNot)
      return Error{detour.name + ": " + std::string(patch::describe(detour.left_out))};
  return program.detours.empty() ? Status(Unit{}) : fetch(process, "karst_attach_detours", {}, programs);
}

}  // namespace karst::collect
