// SPDX-License-Identifier: MIT
// Environments of programs that this one starts. Who passes a new one (`env -i`, a start script's own LD_PRELOAD) means
// the program's variables, and not us: what brought us here is put back. Where we cannot be loaded it is taken out.
//
// An environment is the program's own memory, and may be no memory at all: each page is asked for before it is read.
// The new list is made in the caller's frame, as the caller may be a vfork child or a signal handler.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::runtime {

/// At start, before anyone else changes it: keeps copies of the variables by which we come into programs. `preloads`:
/// so many libraries come with us, at least (Options::preloads).
void keep_for_children(char** environment, std::uint32_t preloads);

/// It can be read, up to its end; such a text is shorter than a page.
bool is_readable_text(const char* text);

/// Where this libkarst.so is; empty: nothing was kept.
const char* kept_library();

/// What a program wants in its environment beside us.
struct ProgramNeeds {
  bool libasan = false;    ///< it has gcc's AddressSanitizer, which wants to be told that it need not come first
  bool old_glibc = false;  ///< its glibc is another one than ours, and wants format::kOldGlibcLibrary
};

class ChildEnvironment {
 public:
  enum class Wish {
    kFollow,  ///< we are to be in the program
    kLeave,   ///< we must not be
  };
  enum class Change {
    kNone,      ///< it is as wished, or its maker chose otherwise (KARST_OPTIONS of its own), or it cannot be read
    kNew,       ///< make() it
    kTooLarge,  ///< it should be changed, and has more than kMost entries or too long ones
  };
  static constexpr std::size_t kMost = 4096;
  static constexpr std::size_t kMostText = 16384;

  /// `given` may be null or anything.
  ChildEnvironment(char* const* given, Wish wish, ProgramNeeds needs = {});
  Change change() const { return change_; }
  /// As it was given, or kLeave where the environment's maker chose so.
  Wish wish() const { return wish_; }
  /// In bytes, for make().
  std::size_t size() const { return (entries_ + 1) * sizeof(char*) + text_size_; }
  /// The new environment, in memory of size() bytes, aligned as a pointer. It points to strings of the given one.
  char** make(void* memory) const;

 private:
  void wish_to_follow();
  void wish_to_leave();

  char* const* given_;
  Wish wish_;
  ProgramNeeds needs_;
  Change change_ = Change::kNone;
  std::size_t count_ = 0;      // of given_
  std::size_t entries_ = 0;    // of the new one, at most
  std::size_t text_size_ = 0;  // of strings that are made anew, at most
};

}  // namespace karst::runtime
