// SPDX-License-Identifier: MIT
// Waits for locks: zones whose arguments say which lock it was and who had it (format/values.h). libkarst-locks.so
// records them (interpose/locks.cc), analysis/locks.h reads them. A zone's name is that of its kind of wait.
#pragma once

namespace karst::format {

/// Description of a wait's arguments: the lock's address, and the thread that had it, by the kernel's number; 0: not
/// known.
inline constexpr char kLockValues[] = "lock:x,holder:u4|";
/// The same of what no thread has: a condition, a semaphore, a barrier, or a spinlock, which does not say.
inline constexpr char kWaitValues[] = "lock:x|";
/// In the place of a description: a name of notes that is the name of a lock, as `0x55d04010 cache`.
inline constexpr char kLockName[] = "lock:x";
/// The same of a lock in a module's static data, as `0x55d04010 server+0x4010`: the address in the ELF file. Behind it
/// is the module's build-id, in hexadecimal; the name's source file is the module. When a trace is written, the
/// variable's name takes that place's place, if it is known (symbols/static_locks.h), and the source file is none.
inline constexpr char kStaticLock[] = "static lock:";

// With --system locks=all there are also records (NoteKind::kRecord, format/note.h) of locks that are taken and let go,
// named by the kind of lock: "mutex", "rwlock", "rwlock (shared)", "spinlock". Of a recursive mutex the outermost hold
// is told alone. A wait for a condition lets go of its mutex and takes it again.
/// Behind the call. `tried` 1: it would have given up, at once or after a time.
inline constexpr char kLockTaken[] = "locked:x,tried:u1|";
/// Before the call. Of a rwlock the name does not say in which way it was held.
inline constexpr char kLockReleased[] = "unlocked:x|";
/// The call failed: the thread's last kLockReleased of this lock has not happened.
inline constexpr char kLockKept[] = "kept:x|";
/// It was initialized by a call: another lock may have had that address before.
inline constexpr char kLockMade[] = "made:x|";

}  // namespace karst::format
