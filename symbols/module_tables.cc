// SPDX-License-Identifier: MIT
#include "symbols/module_tables.h"

#include <sys/stat.h>

#include <cstring>
#include <utility>

#include "sandbox/sandbox.h"
#include "symbols/symbol_image.h"

namespace karst::symbols {
namespace {

/// A file that was written to or replaced has another one.
std::string key_of(const binary::ModuleFile& file, const binary::DebugSearch& search,
                   const std::optional<sandbox::Credentials>& as) {
  std::string key = file.path.string();
  key += '\0';
  key += file.build_id;
  key += file.by_file ? '\1' : '\0';
  key += file.file;
  const auto add = [&key](auto value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  struct stat status {};
  if (::stat(file.path.c_str(), &status) == 0) {
    add(status.st_dev);
    add(status.st_ino);
    add(status.st_size);
    add(status.st_mtim);
    add(status.st_ctim);
  }
  for (const auto& directory : search.directories) key += directory.string() + '\0';
  if (as) add(as->uid);
  return key;
}

/// In the sandbox.
void read_module(const binary::ModuleFile& file, const binary::DebugSearch& search, sandbox::AnswerWriter& out) {
  if (search.servers != nullptr) search.servers->stay_offline();
  const auto table = SymbolTable::load(file, search);
  out.text(search.servers != nullptr ? search.servers->wanted() : std::string());
  out.text(table ? std::string() : table.error().message);
  if (!table) return;
  out.text(table->debug_missing());
  out.text(table->debug_incomplete());
  out.text(table->image());
}

/// `wanted`: the build-id of a debug file that a server may have.
Result<SymbolTable> decode(const std::vector<std::byte>& answer, const binary::ModuleFile& file, std::string& wanted) {
  sandbox::AnswerReader in(answer);
  wanted = in.text();
  if (const std::string_view error = in.text(); !error.empty()) return Error{std::string(error)};
  const std::string_view missing = in.text();
  const std::string_view incomplete = in.text();
  const auto image = in.bytes();
  if (!in.is_whole()) return Error{"its reader's answer is damaged"};
  auto copy = std::make_unique_for_overwrite<std::byte[]>(image.size());
  std::memcpy(copy.get(), image.data(), image.size());
  auto table = SymbolTable::from_image(std::move(copy), image.size(), std::string(missing), std::string(incomplete));
  if (table && !file.admits(table->build_id())) return Error{"its reader's answer is damaged"};
  return table;
}

Result<SymbolTable> read_apart(const binary::ModuleFile& file, const binary::DebugSearch& search,
                               const std::optional<sandbox::Credentials>& as) {
  constexpr int kRounds = 4;  // a debug file, the one that it shares with others
  for (int round = 0;; ++round) {
    sandbox::SandboxOptions options{.as = as, .most = kMaxHeap + (std::size_t{1} << 30)};
    if (search.servers != nullptr) options.keep = search.servers->descriptors();
    if (file.mapped != nullptr) options.keep.push_back(file.mapped->get());
    const auto answer =
        sandbox::in_sandbox(options, [&](sandbox::AnswerWriter& out) { read_module(file, search, out); });
    if (!answer) return Error{"cannot take names from " + file.path.string() + ": " + answer.error().message};
    std::string wanted;
    auto table = decode(*answer, file, wanted);
    if (wanted.empty() || wanted.size() > 64 || round == kRounds || !search.servers->fetch(wanted)) return table;
  }
}

}  // namespace

ModuleTables::Table ModuleTables::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    if (at->key != key) continue;
    kept_.splice(kept_.begin(), kept_, at);
    return at->table;
  }
  return nullptr;
}

void ModuleTables::keep(const std::string& key, const Table& table) {
  const std::lock_guard lock(mutex_);
  if (table->image().size() > kMost) return;
  kept_.push_front({key, table});
  for (size_ += table->image().size(); size_ > kMost; kept_.pop_back()) size_ -= kept_.back().table->image().size();
}

Result<ModuleTables::Table> ModuleTables::load(const binary::ModuleFile& file, const Cache& cache,
                                               const binary::DebugSearch& search,
                                               const std::optional<sandbox::Credentials>& as) {
  const std::string key = key_of(file, search, as);
  if (Table table = find(key)) return table;
  const auto share = [&](SymbolTable table) {
    auto shared = std::make_shared<const SymbolTable>(std::move(table));
    keep(key, shared);
    return shared;
  };
  if (!as && !file.build_id.empty())
    if (auto table = cache.find(file.build_id)) return Result<Table>(share(std::move(*table)));
  auto table = read_apart(file, search, as);
  if (!table) return table.error();
  if (!as) cache.save(*table);
  return Result<Table>(share(std::move(*table)));
}

}  // namespace karst::symbols
