// SPDX-License-Identifier: MIT
#include "words/wait_words.h"

#include <vector>

#include "analysis/syscall_names.h"

namespace karst::words {
namespace {

using analysis::CpuShare;
using analysis::KeptOff;
using reader::ThreadState;

constexpr std::size_t kMostNamed = 3;  // that are named

/// What is too short to be told in words: a two hundredth of the wait.
bool is_told(std::uint64_t part, std::uint64_t whole) { return part != 0 && part >= whole / 200; }

std::uint64_t whole_of(const KeptOff& kept) {
  std::uint64_t whole = kept.unknown + kept.more_ticks;
  for (const CpuShare& share : kept.shares) whole += share.ticks;
  return whole;
}

std::string part_words(const CpuShare& share, const reader::States& states, const Writing& writing) {
  std::string part = "by " + share_words(share, states);
  if (share.in.row != reader::kNoParent) part += " in " + writing.name(*share.in.thread, share.in.function);
  return part;
}

std::string preempted_words(const analysis::Wait& wait, const std::string& who, const std::string& kept_off) {
  if (!kept_off.empty()) return "runnable, " + kept_off + cut_words(wait);
  const std::string text = "runnable, kept off CPU " + std::to_string(wait.cpu);
  return (who.empty() ? text : text + " by " + who) + cut_words(wait);
}

}  // namespace

std::string wait_words(const analysis::Wait& wait, const reader::States& states, const Writing& writing,
                       const std::string& kept_off) {
  if (wait.state == ThreadState::kUnknown) return "not known: the system's records are missing here";
  const std::string who = task_words(states, wait.by);
  if (wait.state == ThreadState::kPreempted) return preempted_words(wait, who, kept_off);
  std::string text = "runnable, waiting for a CPU";
  if (wait.state == ThreadState::kBlocked) {
    const std::string where = blocked_words(wait.syscall, wait.letter);
    text = where.empty() ? "blocked" : "blocked in " + where;
    if (wait.in != nullptr) text += ", called by " + wait.in->name;
  }
  if (!who.empty()) text += ", woken by " + who;
  const analysis::CallOf& other = wait.waker.thread != nullptr ? wait.waker : wait.interrupted;
  if (other.row != reader::kNoParent) text += " in " + writing.name(*other.thread, other.function);
  if (wait.runnable != 0)
    text += "; the last " + writing.time(wait.runnable) + (kept_off.empty() ? " waiting for a CPU" : " " + kept_off);
  if (wait.state == ThreadState::kWoken && !kept_off.empty()) text += "; " + kept_off;
  return text + cut_words(wait);
}

std::string kept_off_words(const KeptOff& kept, const reader::States& states, const Writing& writing) {
  const bool idle = kept.shares.size() == 1 && kept.shares[0].task == reader::kIdleTask && !kept.shares[0].others;
  if (kept.empty() || idle) return {};
  const std::uint64_t whole = whole_of(kept);
  std::string text = "kept off CPU " + std::to_string(kept.cpu);
  if (kept.moved_to != analysis::kNoCpu) text += ", then CPU " + std::to_string(kept.moved_to);
  std::vector<const CpuShare*> told;
  std::uint64_t rest = kept.more_ticks;
  for (const CpuShare& share : kept.shares) {
    const bool is_named = told.size() < kMostNamed && (told.empty() || is_told(share.ticks, whole));
    if (is_named)
      told.push_back(&share);
    else
      rest += share.ticks;
  }
  const std::size_t others = kept.shares.size() - told.size() + kept.more;
  const bool tell_rest = others != 0 && is_told(rest, whole);
  if (told.size() == 1 && !tell_rest && !is_told(kept.unknown, whole))
    return text + " " + part_words(*told[0], states, writing);
  for (const CpuShare* share : told)
    text += (share == told[0] ? ": " : ", ") + writing.time(share->ticks) + " " + part_words(*share, states, writing);
  if (tell_rest)
    text += ", " + writing.time(rest) + " by " + std::to_string(others) + (others == 1 ? " other" : " others");
  if (is_told(kept.unknown, whole)) text += ", " + writing.time(kept.unknown) + " not known";
  return text;
}

std::string task_words(const reader::States& states, std::uint32_t task) {
  if (const std::uint32_t during = reader::interrupted_task(task); during != reader::kNoTask) {
    const std::string who = task_words(states, during);
    return who.empty() ? "an interrupt" : "an interrupt while " + who + " ran";
  }
  if (task == reader::kInterruptTask) return "an interrupt";
  if (task == reader::kIdleTask) return "the idle thread";
  if (task >= states.tasks().size()) return {};
  const reader::Task& of = states.tasks()[task];
  return of.name.empty() ? std::to_string(of.tid) : std::to_string(of.tid) + " " + of.name;
}

std::string cut_words(const analysis::Wait& wait) {
  if (wait.begun_before && wait.not_over) return "; cut: it had begun before the recording, and went on after it";
  if (wait.begun_before) return "; cut: it had begun before the recording";
  return wait.not_over ? "; cut: it went on after the recording" : "";
}

std::string blocked_words(std::uint32_t syscall, char letter) {
  if (syscall != 0) {
    const std::string name = analysis::syscall_name(syscall - 1);
    return name.empty() ? "system call " + std::to_string(syscall - 1) : name;
  }
  switch (letter) {
    case 'S':
      return "sleep";
    case 'D':
      return "uninterruptible sleep (disk, or the like)";
    case 'T':
      return "stop by a signal";
    case 't':
      return "stop by a debugger";
    case 'I':
      return "idle sleep";
    default:
      return {};
  }
}

std::string share_words(const analysis::CpuShare& share, const reader::States& states) {
  std::string first = task_words(states, share.task);
  if (!share.others) return first;
  const std::string last = task_words(states, share.last);
  if (share.task == reader::kIdleTask) return last + " and perhaps others";
  if (last.empty() || share.last == share.task) return first + " and perhaps others";
  if (share.last == reader::kIdleTask) return first + " and perhaps others, at last nobody";
  return "others, " + first + " first and " + last + " last";
}

const char* state_word(ThreadState state) {
  switch (state) {
    case ThreadState::kRunning:
      return "running";
    case ThreadState::kPreempted:
      return "preempted";
    case ThreadState::kWoken:
      return "woken";
    case ThreadState::kBlocked:
      return "blocked";
    case ThreadState::kGone:
      return "gone";
    case ThreadState::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace karst::words
