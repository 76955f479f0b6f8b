// Programs that this process starts: the session is told which, as one that cannot load the runtime (setuid, static)
// would else be missing from the trace without a word.
#ifndef KARST_RUNTIME_HOOKS_EXEC_H
#define KARST_RUNTIME_HOOKS_EXEC_H

/// X(name, constant): the functions that exec.S stands before. Numbered from 0, in C++ and in assembly.
#define KARST_EXEC_FUNCTIONS(X) \
  X(execve, kExecve)            \
  X(execv, kExecv)              \
  X(execvp, kExecvp)            \
  X(execvpe, kExecvpe)          \
  X(execl, kExecl)              \
  X(execle, kExecle)            \
  X(execlp, kExeclp)            \
  X(fexecve, kFexecve)          \
  X(posix_spawn, kPosixSpawn)   \
  X(posix_spawnp, kPosixSpawnp)

#ifndef __ASSEMBLER__
namespace karst::runtime {

/// At start, when the session is known. Without one, or never called: nobody is told.
void report_started_programs();

}  // namespace karst::runtime
#endif
#endif
