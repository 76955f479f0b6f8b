// An index that comes from a cache, as it does when a trace is looked at for the second time.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "engine/index/index.h"
#include "engine/index/index_cache.h"
#include "test/analysis/sample_trace.h"

namespace karst::test {

/// Writes `sample` into a directory of its own, which goes with this. Throws where that fails.
class CachedIndex {
 public:
  CachedIndex(SampleTrace& sample, const std::string& name)
      : directory_(std::filesystem::path(testing::TempDir()) / (name + "-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(directory_);
    auto writer = writing::TraceWriter::create(directory_ / "app.karst");
    if (!writer.ok()) throw std::runtime_error(writer.error().message);
    sample.write(*writer);
    const engine::IndexCache cache(directory_ / "cache", engine::IndexCache::kDefaultLimit, 0);
    const std::atomic<bool> stop = false;
    if (!cache.save(*open(cache), stop)) throw std::runtime_error("the index cannot be saved");
    index_ = open(cache);
    if (!index_->from_cache()) throw std::runtime_error("the index does not come from the cache");
  }
  ~CachedIndex() { std::filesystem::remove_all(directory_); }
  CachedIndex(const CachedIndex&) = delete;
  CachedIndex& operator=(const CachedIndex&) = delete;

  engine::TraceIndex& operator*() const { return *index_; }
  engine::TraceIndex* operator->() const { return index_.get(); }
  engine::TraceIndex* get() const { return index_.get(); }

 private:
  std::unique_ptr<engine::TraceIndex> open(const engine::IndexCache& cache) const {
    engine::IndexProgress progress;
    auto index = engine::TraceIndex::build(directory_ / "app.karst", progress, &cache);
    if (!index) throw std::runtime_error(index.error().message);
    return std::move(*index);
  }

  std::filesystem::path directory_;
  std::unique_ptr<engine::TraceIndex> index_;
};

}  // namespace karst::test
