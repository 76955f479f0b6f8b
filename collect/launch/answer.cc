// SPDX-License-Identifier: MIT
// An answer is a small trace file in a sealed memfd: who asks copies its chunks, or reads it like any foreign trace.
#include "collect/launch/answer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/sealed_memory.h"
#include "format/moments.h"
#include "format/option_text.h"
#include "reader/trace.h"
#include "write/trace_writer.h"

namespace karst::collect {

using namespace format;

namespace {

// ---- giving -----------------------------------------------------------------------------------

/// Triggers that were hit in the stretch, as far as the ring still has what led there.
std::vector<reader::Moment> triggers_in(RecordedProcess& process, const Arrival& asker) {
  std::vector<reader::Moment> found;
  const ArenaView* arena = process.history.arena();
  if (arena == nullptr) return found;
  const std::uint64_t whole = arena->whole_from();
  std::uint32_t number = asker.first_function;
  for (reader::Moment moment : process.moments) {
    if (moment.begin_ticks < asker.from_ticks || moment.end_ticks > asker.to_ticks) continue;
    moment.number = number++;
    moment.kept_from = std::max(moment.kept_from, asker.from_ticks);
    moment.kept_to = std::min(moment.kept_to, asker.to_ticks);
    moment.whole_from = std::min(std::max({moment.whole_from, moment.kept_from, whole}), moment.kept_to);
    if (moment.whole_from > moment.kept_from) moment.flags |= kMomentGaveUp;
    found.push_back(std::move(moment));
  }
  return found;
}

// ---- asking -----------------------------------------------------------------------------------

struct Listener {
  SessionKey key;
  pid_t pid = 0;  ///< of karst run, as the name says
};

/// What the process was started with. It may have written over that since, so anything may stand there.
std::optional<Listener> session_of(const HeldProcess& process) {
  constexpr std::size_t kMostBytes = std::size_t{8} << 20;
  constexpr std::string_view kOptions = "KARST_OPTIONS=";
  std::ifstream in(process.path("environ"), std::ios::binary);
  std::size_t read = 0;
  for (std::string text; read < kMostBytes && std::getline(in, text, '\0'); read += text.size() + 1) {
    if (!text.starts_with(kOptions)) continue;
    Listener found;
    for_each_entry(text.c_str() + kOptions.size(), [&found](const std::string& name, const std::string& value) {
      if (name == "session") parse_session(value.c_str(), found.key);
    });
    const std::string_view name = found.key.name;
    const auto dash = name.find('-');
    if (dash == std::string_view::npos || name.size() + 1 >= sizeof sockaddr_un::sun_path) return std::nullopt;
    std::from_chars(name.data() + dash + 1, name.data() + name.size(), found.pid);
    return found;
  }
  return std::nullopt;
}

/// As the process itself looks at who listens (runtime/process/session.cc).
bool is_trusted(int fd, const Listener& session, uid_t owner) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid != 0 && peer.uid != geteuid() && peer.uid != owner) return false;
  return peer.pid == 0 || peer.pid == session.pid;
}

struct Reply {
  Descriptor trace;
  const char* why_none = nullptr;
};

Reply ask(const Listener& session, uid_t owner, const Hello& hello) {
  const Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(session.key.name);
  std::memcpy(address.sun_path + 1, session.key.name, length);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (!fd || connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return {{}, errno == EAGAIN ? kWhySilent : kWhyEnded};
  if (!is_trusted(fd.get(), session, owner)) return {{}, kWhyEnded};
  if (send(fd.get(), &hello, sizeof hello, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof hello)) return {{}, kWhySilent};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kAnswerWithin);
  pollfd ready{fd.get(), POLLIN, 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return {{}, kWhySilent};
    const int n = poll(&ready, 1, static_cast<int>(left.count()));
    if (n > 0) break;
    if (n < 0 && errno != EINTR) return {{}, kWhyNotGiven};
  }
  Answer answer{};
  Reply reply{take_message(fd.get(), &answer, sizeof answer), kWhyNotGiven};
  if (answer.magic != kSessionMagic || answer.version != kSessionVersion) return {{}, kWhyNotGiven};
  if (answer.outcome == static_cast<std::uint32_t>(AnswerOutcome::kOtherUser)) reply.why_none = kWhyOtherUser;
  return reply;
}

std::optional<std::vector<std::byte>> read_sealed(const Descriptor& fd) {
  struct stat status {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);  // fails unless it is memory
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd.get(), &status) != 0 || status.st_size <= 0 ||
      static_cast<std::uint64_t>(status.st_size) > kMostAnswer)
    return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = pread(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n <= 0) return std::nullopt;
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace

void give_answer(Arrival asker, kernel::StateRecorder& states, RecordedProcess* process) {
  if (asker.uid != 0 && asker.uid != geteuid()) return asker.answer(AnswerOutcome::kOtherUser, {});
  if (process == nullptr) return asker.answer(AnswerOutcome::kUnknownProcess, {});
  std::vector<std::byte> bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writer.add_states(excerpt_states(states.look(), asker.from_ticks, asker.to_ticks));
  writer.add_moments(0, triggers_in(*process, asker));
  const Status written = writer.finish();
  const Descriptor trace = written && bytes.size() <= kMostAnswer ? sealed_memory("karst-answer", bytes) : Descriptor();
  asker.answer(trace ? AnswerOutcome::kGiven : AnswerOutcome::kImpossible, trace);
}

std::optional<Answered> ask_session(const HeldProcess& process, uid_t user, const ArenaView& arena,
                                    std::uint64_t from_ticks, std::uint64_t to_ticks) {
  const auto session = session_of(process);
  if (!session) return std::nullopt;
  Hello hello{};
  hello.magic = kSessionMagic;
  hello.version = kSessionVersion;
  hello.pid = static_cast<std::uint32_t>(getpid());
  hello.kind = static_cast<std::uint32_t>(HelloKind::kAsks);
  hello.origin.pid = arena.pid();
  hello.origin.start_ticks = arena.start().ticks;
  hello.from_ticks = from_ticks;
  hello.to_ticks = to_ticks;
  hello.secret = session->key.secret;
  const Reply reply = ask(*session, user, hello);
  Answered answered;
  answered.states.source.note = reply.why_none != nullptr ? reply.why_none : kWhyNotGiven;
  const auto bytes = reply.trace ? read_sealed(reply.trace) : std::nullopt;
  if (!bytes) return answered;
  const auto trace = reader::Trace::open_memory(*bytes, "karst run's answer");
  if (!trace) return answered;
  answered.states = trace->states().log();
  for (const reader::Process& image : trace->processes())
    if (image.index == 0) answered.moments = image.moments;
  return answered;
}

}  // namespace karst::collect
