// SPDX-License-Identifier: MIT
// A running process's memory and what is mapped there, from outside.
//
// Both are hostile: a process may say anything in its memory, and change it while it is read. Reads are bounded, and no
// number of it is used as a place in memory of ours.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/held_process.h"
#include "base/process_maps.h"
#include "base/result.h"

namespace karst::collect {

/// In order of addresses; empty when the process is gone or may not be looked into. Code that a program has moved into
/// memory without a file, between mappings of the file that it comes from, counts as mapped from there: for the sake of
/// huge pages some move their own (iodlr, node --use-largepages, ClickHouse).
std::vector<Mapping> mappings_of(const HeldProcess& process);
/// Where `size` bytes are free, with as many on each side. None: the address space is full.
std::optional<std::uint64_t> free_place(const std::vector<Mapping>& mappings, std::uint64_t size);

/// /proc/PID/mem. It is the memory that the process has as it is opened: when another program is executed, it does not
/// become that one's. One thread at a time.
///
/// Tables in it may be endless, lead back to themselves, or be there in thousands of modules. So one look at tables
/// (ForeignModule, own_modules) takes kMostTableReads reads at most, half a second. Beyond that nothing is found. A
/// process with a thousand libraries stays below. Who looks again says so by begin_look().
class ForeignMemory {
 public:
  /// Error: why not, without the process's name.
  static Result<ForeignMemory> open(const HeldProcess& process);
  /// The thread of the process, which is stopped, runs in this memory. A process that executes another program has a
  /// new one, with other rights maybe, while the old one may live on in a child that shares it.
  bool is_of(const HeldProcess& process, pid_t thread) const;
  /// False unless all bytes were there.
  bool read(std::uint64_t address, void* to, std::size_t size) const;
  /// Code, too: the process gets a page of its own. Requires that a thread of it is traced by the caller.
  bool write(std::uint64_t address, const void* from, std::size_t size) const;
  /// Up to a zero, `most` bytes, or what cannot be read.
  std::string text(std::uint64_t address, std::size_t most) const;

  /// Whether there are so many zero-ended bytes, which are `text`.
  bool is_text(std::uint64_t address, std::string_view text) const;

  static constexpr std::uint32_t kMostTableReads = 1 << 19;
  void begin_look() const { table_reads_ = 0; }
  /// As get(), of a table: see above.
  template <typename T>
  std::optional<T> entry(std::uint64_t address) const {
    if (table_reads_ == kMostTableReads) return std::nullopt;
    ++table_reads_;
    return get<T>(address);
  }

  template <typename T>
  std::optional<T> get(std::uint64_t address) const {
    T value;
    if (!read(address, &value, sizeof value)) return std::nullopt;
    return value;
  }

 private:
  explicit ForeignMemory(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
  mutable std::uint32_t table_reads_ = 0;
};

/// A module as it is mapped: what its program headers and its dynamic section say. It is no file, and each word of it
/// may be missing or change: not for binary/elf_file.h.
class ForeignModule {
 public:
  /// `base`: where its file's beginning is mapped. None: not an ELF file of 64 bits that makes sense.
  static std::optional<ForeignModule> of(const ForeignMemory& memory, std::uint64_t base);
  /// The address of a function or variable that the module exports; 0: there is none.
  std::uint64_t find(const ForeignMemory& memory, const std::string& name) const;
  /// Calls visit(name, address) for each slot that the dynamic linker fills with the address of what has that name.
  /// `most`: bytes of tables that may be read, which becomes less by those that were.
  void for_each_slot(const ForeignMemory& memory, std::uint64_t& most,
                     const std::function<void(std::string_view name, std::uint64_t slot)>& visit) const;
  /// Where its dynamic section is, which tells it from all others; 0: it has none.
  std::uint64_t dynamic() const { return dynamic_; }
  /// Added to the file's addresses.
  std::uint64_t bias() const { return base_; }
  /// The bytes between the end of its code and the end of its last page. Nothing executes them.
  std::uint64_t slack() const { return slack_; }
  std::uint64_t slack_size() const { return slack_size_; }

 private:
  std::uint64_t base_ = 0;
  std::uint64_t dynamic_ = 0;
  std::uint64_t symbols_ = 0;
  std::uint64_t names_ = 0;
  std::uint64_t names_size_ = 0;
  std::uint64_t relocations_[2] = {};  ///< DT_RELA, DT_JMPREL
  std::uint64_t relocations_size_[2] = {};
  std::uint64_t hashes_ = 0;  ///< DT_GNU_HASH
  std::uint64_t slack_ = 0;
  std::uint64_t slack_size_ = 0;
};

/// The address of what libkarst.so exports in that process; 0: it has no libkarst.so, or one without it.
std::uint64_t find_in_runtime(const ForeignMemory& memory, const std::vector<Mapping>& mappings,
                              const std::string& name);

/// The dynamic sections of the modules in the program's own namespace: those of others, by dlmopen(), have a libc of
/// their own. None: the loader's list is not there.
std::optional<std::vector<std::uint64_t>> own_modules(const ForeignMemory& memory,
                                                      const std::vector<Mapping>& mappings);

}  // namespace karst::collect
