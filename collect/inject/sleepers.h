// Threads that sleep, and whose stacks have old words from the allocator or the dynamic linker: a shell at its prompt.
// Their frames are found as an exception's are, by the files' tables (sampler/unwind.h), while they sleep on. A thread
// that is found as it was is where those frames say.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <map>

#include "collect/inject/memory.h"
#include "collect/inject/threads.h"

namespace karst::collect {

class Sleepers {
 public:
  explicit Sleepers(pid_t process) : process_(process) {}

  /// The thread is stopped and has this stack. True: it was judged, is as it was then, and is free.
  bool is_free(pid_t thread, const StackWords& stack);
  /// Judges those that is_free() was asked of and did not know. They run meanwhile.
  void judge(const ForeignMemory& memory, const std::vector<Mapping>& mappings, const OwnAllocator& allocator);

 private:
  struct Sleeper {
    StackWords stack;
    bool is_judged = false;
    bool is_free = false;
  };
  pid_t process_;
  std::map<pid_t, Sleeper> sleepers_;  // by thread
};

}  // namespace karst::collect
