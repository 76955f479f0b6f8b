// SPDX-License-Identifier: MIT
#include "engine/server/loader.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <new>
#include <system_error>

#include "analysis/selection.h"
#include "base/json.h"
#include "engine/index/newest_part.h"
#include "symbols/open_trace.h"

namespace karst::engine {

Loader::Seen Loader::look_at(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size)};
}

Loader::Loader(std::vector<std::filesystem::path> files, std::string version, Api::Server server, IndexCache cache,
               Preview::Limits preview)
    : files_(std::move(files)),
      version_(std::move(version)),
      server_(server),
      cache_(std::move(cache)),
      preview_({preview.least_events, preview.long_thread, [this, also = std::move(preview.on_part)] {
                  if (also) also();
                  const std::lock_guard lock(mutex_);
                  changed_.notify_all();
                }}) {
  for (std::size_t i = 0; i < files_.size(); ++i) progress_.push_back(std::make_unique<IndexProgress>());
  thread_ = std::thread([this] { load(); });
}

Loader::Loader(const std::shared_ptr<Loader>& before, std::uint64_t events)
    : files_(before->files_),
      version_(before->version_),
      server_(before->server_),
      cache_(before->cache_),
      newest_(events),
      before_(before) {
  for (std::size_t i = 0; i < files_.size(); ++i) progress_.push_back(std::make_unique<IndexProgress>());
  thread_ = std::thread([this] { load(); });
}

Loader::~Loader() {
  for (const auto& progress : progress_) progress->stop = true;
  thread_.join();
}

void Loader::load() {
  std::string error;
  try {
    for (std::size_t i = 0; i < files_.size() && error.empty(); ++i) {
      {
        const std::lock_guard lock(mutex_);
        seen_.push_back(look_at(files_[i]));
      }
      auto index = load_one(i);
      if (index) {
        traces_.push_back(std::move(*index));
      } else {
        error = index.error().message;
      }
    }
    before_.reset();
    if (error.empty()) {
      std::vector<const TraceIndex*> traces;
      for (const auto& trace : traces_) traces.push_back(trace.get());
      note_sizes();
      api_ = std::make_unique<Api>(std::move(traces), version_);
      api_->set_server(server_);
    }
  } catch (const std::bad_alloc&) {
    error = std::move(no_memory_);
  } catch (const std::exception&) {
    error = std::move(other_failure_);
  }
  if (error.empty()) ready_.store(api_.get(), std::memory_order_release);
  preview_.end();
  bool failed = false;
  {
    const std::lock_guard lock(mutex_);
    failed = !error.empty();
    error_ = std::move(error);
    finished_ = true;
    changed_.notify_all();
  }
  // While people look already.
  if (failed) return;
  try {
    // One that grows is another one a moment later.
    for (std::size_t i = 0; i < traces_.size(); ++i)
      if (!traces_[i]->trace().growing()) cache_.save(*traces_[i], progress_[i]->stop);
  } catch (const std::exception&) {  // then it is made again the next time
  }
}

Result<std::unique_ptr<TraceIndex>> Loader::load_one(std::size_t number) {
  if (newest_ != 0) return load_part(number);
  return TraceIndex::build(files_[number], *progress_[number], &cache_, files_.size() == 1 ? &preview_ : nullptr);
}

// Without what was left out before, and without more if there is more than enough. A recording that has ended is read
// as a whole, as one is of which too little is known.
Result<std::unique_ptr<TraceIndex>> Loader::load_part(std::size_t number) {
  auto trace = symbols::open_trace(files_[number]);
  if (!trace) return trace.error();
  const TraceIndex* const known = before_->trace(number);
  const bool same = known != nullptr && before_->is_there(number) && trace->growing();
  const std::uint64_t origin = analysis::first_ticks(*trace);
  left_out_.resize(files_.size());
  if (same) {
    const bool part = number < before_->left_out_.size();
    left_out_[number] = newest_part(*trace, *known, part ? before_->left_out_[number] : reader::LeftOut(), newest_);
  }
  if (left_out_[number].empty()) return TraceIndex::build(std::move(*trace), *progress_[number]);
  trace->leave_out(left_out_[number]);
  return TraceIndex::build_part(std::move(*trace), origin, *progress_[number]);
}

bool Loader::is_part() const {
  if (api() == nullptr) return newest_ != 0;
  return std::any_of(traces_.begin(), traces_.end(), [](const auto& trace) { return trace->trace().is_part(); });
}

std::uint64_t Loader::part_from(std::size_t number) const {
  std::uint64_t from = 0;
  if (number < left_out_.size())
    for (const auto& [thread, blocks] : left_out_[number]) from = std::max(from, blocks.until);
  return from;
}

bool Loader::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

void Loader::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return finished_; });
}

bool Loader::wait_for(std::chrono::milliseconds longest, bool picture) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [&] { return finished_ || (picture && preview_.parts() != 0); });
}

std::optional<Reply> Loader::preview(std::string_view path, const Parameters& parameters, Work* work) {
  // Tiles are of what the facts that were last asked for told.
  const auto there = path == "trace" ? preview_.refresh() : preview_.latest();
  if (there == nullptr) return std::nullopt;
  if (path != "trace" && (path != "tiles" || parameters.contains("function"))) {
    return error_reply(503, "the trace is still being read, and this is about all of it");
  }
  Api api({there.get()}, version_);
  api.set_server({server_.keep, nullptr, false});
  return api.answer(path, parameters, work);
}

void Loader::read_first(std::string_view threads) {
  constexpr std::size_t kMost = 1000;  // more are on nobody's screen
  std::vector<std::uint32_t> numbers;
  while (!threads.empty() && numbers.size() < kMost) {
    const std::string_view one = threads.substr(0, threads.find(','));
    threads.remove_prefix(std::min(one.size() + 1, threads.size()));
    std::uint32_t number = 0;
    const auto [end, status] = std::from_chars(one.data(), one.data() + one.size(), number);
    if (status == std::errc() && end == one.data() + one.size()) numbers.push_back(number);
  }
  preview_.want(std::move(numbers));
}

std::string Loader::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

// As they were read: a file may have grown since it was looked at.
void Loader::note_sizes() {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    seen_[i].ended = !traces_[i]->trace().growing();
    seen_[i].size = traces_[i]->trace().file_size();
  }
}

bool Loader::is_behind() const {
  const std::lock_guard lock(mutex_);
  if (!finished_) return false;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const Seen now = look_at(files_[i]);
    if (!seen_[i].ended && now.inode != 0 && (!now.same_file(seen_[i]) || now.size != seen_[i].size)) return true;
  }
  return false;
}

bool Loader::is_there(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  if (number >= seen_.size()) return false;
  const Seen now = look_at(files_[number]);
  return now.inode != 0 && now.same_file(seen_[number]);
}

std::string Loader::progress_json(std::uint64_t number, bool grown) const {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  for (const auto& progress : progress_) {
    done += progress->done;
    total += progress->total;
  }
  const std::string why = error();
  const char* phase = !why.empty() ? "failed" : api() != nullptr ? "ready" : total == 0 ? "opening" : "rebuilding";
  Json json;
  json.open('{').field("phase", phase).field("done", done).field("total", total).field("error", why);
  json.field("parts", preview_.parts()).field("grown", grown).field("generation", number);
  json.list("files", files_, [](const std::filesystem::path& file) { return file.filename().string(); }).close('}');
  return json.take();
}

}  // namespace karst::engine
