// SPDX-License-Identifier: MIT
// What is asked of notes, and of what is made of them: requests, plots, frames, locks, flows, memory.
#include "engine/api/api.h"
#include "engine/api/frames.h"
#include "engine/api/question.h"
#include "engine/api/reply.h"
#include "engine/protocol.h"

namespace karst::engine {
namespace {

/// "message, value or color".
std::string words_of_groups() {
  std::string words = format::kNoteGroupWords[0];
  for (std::size_t group = 1; group < format::kNoteGroups; ++group)
    words.append(group + 1 == format::kNoteGroups ? " or " : ", ").append(format::kNoteGroupWords[group]);
  return words;
}

}  // namespace

Reply Api::requests(const Question& question) {
  const std::uint64_t limit = question.whole("limit", 1000);
  if (limit > kMaxRequests) question.complain("limit may be " + std::to_string(kMaxRequests));
  if (!question.error().empty()) return {};
  const auto requests = question.index().make<RequestTracks>(question.work());
  if (requests == nullptr) return {};
  Json json;
  write_requests(json, question.index(), *requests, limit);
  return json_reply(json);
}

Reply Api::notes(const Question& question) {
  Notes::Question asked;
  asked.threads = question.threads();
  asked.within = question.call();
  asked.range = question.ticks();
  asked.text = question.text("q");
  asked.limit = question.whole("limit", 1000);
  if (asked.limit > kMaxNotes) question.complain("limit may be " + std::to_string(kMaxNotes));
  const std::string order = question.has("order") ? question.text("order") : "oldest";
  if (order != "oldest" && order != "newest") question.complain("order must be oldest or newest");
  asked.newest = order == "newest";
  if (question.has("kind")) {
    asked.groups = 0;
    for (const std::string& name : question.words("kind")) {
      const auto group = note_group_named(name);
      if (!group) question.complain("kind must be " + words_of_groups() + ", not '" + name + "'");
      asked.groups |= group.value_or(0);
    }
  }
  const std::uint64_t width = question.whole("width", 0);
  if (width > kMaxWidth || (question.has("width") && width == 0))
    question.complain("width must be 1 to " + std::to_string(kMaxWidth));
  asked.width = static_cast<std::uint32_t>(width);
  asked.begin = question.begin();
  asked.end = question.end();
  if (width != 0 && !(asked.end > asked.begin)) question.complain("end must be greater than begin");
  if (!question.error().empty()) return {};
  Json json;
  notes_.write(json, question.index(), asked, question.work());
  return json_reply(json);
}

Reply Api::colors(const Question& question) {
  const TraceIndex& index = question.index();
  const std::vector<std::uint32_t> threads = question.threads();
  const std::uint64_t least = question.whole("least", 0);
  if (!question.error().empty()) return {};
  Json json;
  notes_.write_colors(json, index, threads, question.ticks(), least, question.work());
  return json_reply(json);
}

Reply Api::plots(const Question& question) {
  const TraceIndex& index = question.index();
  const std::uint64_t width = question.whole("width", 0);
  if (width > kMaxWidth || (question.has("width") && width == 0))
    question.complain("width must be 1 to " + std::to_string(kMaxWidth));
  const double begin = question.begin();
  const double end = question.end();
  if (width != 0 && !(end > begin)) question.complain("end must be greater than begin");
  if (!question.error().empty()) return {};
  const std::vector<Notes::Plot> plots = notes_.plots(index, question.work());
  if (is_stopped(question.work())) return {};
  const auto wanted = question.numbers("plot", plots.size());
  if (wanted && wanted->size() * width > kMaxPlotPixels)
    question.complain("that is too much for one answer: ask for fewer plots or pixels");
  if (!question.error().empty()) return {};
  Json json;
  if (width != 0) {
    notes_.write_plots(json, index, plots, wanted.value_or(std::vector<std::uint32_t>()), begin, end,
                       static_cast<std::uint32_t>(width), question.work());
    return json_reply(json);
  }
  json.open('{').key("plots").open('[');
  for (const Notes::Plot& plot : plots) {
    json.open('{').field("process", plot.process);
    const std::uint32_t id = plot.kind == SeriesKind::kUsage ? 0 : plot.name;
    const std::string& name = index.trace().function(index.trace().processes()[plot.process], id).name;
    json.field("name", plot.kind == SeriesKind::kFrames   ? "frame " + name + " (ms)"
                       : plot.kind == SeriesKind::kMemory ? std::string("living memory (MiB)")
                       : plot.kind == SeriesKind::kUsage  ? plot.words
                                                          : name);
    if (plot.kind == SeriesKind::kUsage) json.field("usage", plot.of_machine ? "machine" : "process");
    json.field("count", plot.count).key("min").value(plot.least, 6).key("max").value(plot.most, 6);
    if (!plot.look.unit.empty()) json.field("unit", plot.look.unit);
    if (plot.look.line) json.field("line", true);
    if (plot.look.color) json.field("color", *plot.look.color);
    json.close('}');
  }
  json.close(']').close('}');
  return json_reply(json);
}

Reply Api::frame(const Question& question) {
  const auto frames = question.index().make<FrameTracks>(question.work());
  if (frames == nullptr) return {};
  const std::uint64_t set = question.whole("set", frames->tracks.size());
  if (set >= frames->tracks.size()) question.complain("which frames? set must be a place in the list of api/frames");
  const double target = question.number("target", 0);
  if (!(target > 0)) question.complain("target must be a time in ns, more than 0");
  if (!question.error().empty()) return {};
  const FrameTrack& track = frames->tracks[set];
  std::optional<std::size_t> at;
  if (question.has("number")) {
    at = frame_numbered(track, question.whole("number", 0));
    if (!at) question.complain("there is no frame '" + question.text("number") + "'");
    if (!question.error().empty()) return {};
  }
  std::optional<analysis::Picture> picture;
  if (at) picture = notes_.picture(question.index(), track, question.whole("number", 0), question.work());
  if (is_stopped(question.work())) return {};
  Json json;
  write_frame(json, question.index(), track, target, at, picture);
  return json_reply(json);
}

Reply Api::lock(const Question& question) {
  const TraceIndex& index = question.index();
  const auto call = question.call();
  if (!question.error().empty()) return {};
  const auto locks = index.make<LockTracks>(question.work());
  if (locks == nullptr) return {};
  Json json;
  if (call) {
    if (write_wait(json, index, *locks, *call)) return json_reply(json);
    return error_reply(404, "this call is no wait for a lock that has a track");
  }
  const std::uint64_t lock = question.whole("lock", locks->tracks.size());
  if (lock >= locks->tracks.size()) {
    question.complain("which call? thread and index, or lock and holder, are missing");
    return {};
  }
  const std::uint64_t holder = question.whole("holder", locks->tracks[lock].row.holders.size());
  if (holder >= locks->tracks[lock].row.holders.size())
    question.complain("there is no holder '" + question.text("holder") + "' of lock " + std::to_string(lock));
  if (!question.error().empty()) return {};
  write_holder(json, index, *locks, lock, holder);
  return json_reply(json);
}

Reply Api::flows(const Question& question) {
  const auto call = question.call();
  if (!call && question.error().empty()) question.complain("which call? thread and index are missing");
  if (!question.error().empty()) return {};
  const auto flows = question.index().make<FlowSet>(question.work());
  if (flows == nullptr) return {};
  Json json;
  write_flows(json, question.index(), *flows, *call);
  return json_reply(json);
}

Reply Api::memory(const Question& question) {
  const auto call = question.call();
  if (!call && question.error().empty()) question.complain("which call? thread and index are missing");
  if (!question.error().empty()) return {};
  if (!Memory::has(question.index())) return error_reply(404, "this trace has no records of memory");
  Json json;
  memory_.write(json, question.index(), *call, question.work());
  return json_reply(json);
}

}  // namespace karst::engine
