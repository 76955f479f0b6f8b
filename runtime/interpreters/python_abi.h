// SPDX-License-Identifier: MIT
// What we use of CPython: functions that it exports, and where two pointers lie in a frame that it is about to
// evaluate. No header of Python's is read, as one library serves all versions.
//
// 3.9 to 3.13. Earlier ones have no way to set the function that evaluates frames; of later ones, and of builds without
// a global interpreter lock, nobody has looked at the frames.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::runtime {

// Python's own; nothing is known of them but pointers.
struct PyObject;
struct PyThread;
struct PyInterpreter;
struct PyFrame;

using PyEvaluate = PyObject* (*)(PyThread*, PyFrame*, int is_thrown);
using PyAuditHook = int (*)(const char* event, PyObject* arguments, void* data);

struct Python {
  const char* (*version)();
  int (*is_initialized)();
  int (*add_audit_hook)(PyAuditHook, void* data);
  int (*add_pending_call)(int (*call)(void*), void* data);
  PyThread* (*thread)();  ///< the calling thread's, if it has the lock; else null
  PyInterpreter* (*interpreter)();
  void (*set_evaluate)(PyInterpreter*, PyEvaluate);
  PyEvaluate (*evaluate)(PyInterpreter*);
  PyEvaluate evaluate_default;
  // A word for us in each code object.
  std::ptrdiff_t (*request_extra)(void (*freed)(void*));
  int (*extra)(PyObject* code, std::ptrdiff_t index, void** value);
  int (*set_extra)(PyObject* code, std::ptrdiff_t index, void* value);
  // Reading names. Errors are kept away from the program.
  PyObject* (*attribute)(PyObject*, const char* name);
  PyObject* (*item)(PyObject* dict, const char* key);  ///< borrowed
  PyObject* (*encoded)(PyObject* text, const char* encoding, const char* errors);
  int (*bytes)(PyObject*, char** data, std::ptrdiff_t* size);
  long (*number)(PyObject*);
  void (*release)(PyObject*);
  void (*fetch_error)(PyObject** type, PyObject** value, PyObject** traceback);
  void (*restore_error)(PyObject* type, PyObject* value, PyObject* traceback);
  int (*is_subtype)(void* type, void* of);
  void* code_type;
  void* dict_type;
  void* text_type;

  std::uint32_t minor;       ///< of version 3.minor
  std::uint32_t code_at;     ///< in a frame
  std::uint32_t globals_at;  ///< in a frame
  std::uint32_t owner_at;    ///< in a frame; 0: a generator begins when it is asked for its first value
  std::uint32_t c_calls_at;  ///< in a thread: how much deeper C may call; 0: nobody counts
  bool is_deep_in_c;         ///< a call of Python takes stack of C only when somebody stands before the evaluation

  PyObject* code_of(PyFrame* frame) const {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(frame) + code_at);
  }
  PyObject* globals_of(PyFrame* frame) const {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(frame) + globals_at);
  }
  /// From 3.11 on a generator's function is evaluated when it is called, until there is a generator, to which its frame
  /// belongs from then on.
  bool makes_generator(PyFrame* frame) const {
    constexpr char kOwnedByGenerator = 1;
    return owner_at != 0 && reinterpret_cast<const char*>(frame)[owner_at] != kOwnedByGenerator;
  }
  /// Of all versions and builds that we know.
  static void* type_of(PyObject* object) { return reinterpret_cast<void**>(object)[1]; }
};

enum class PythonFound : std::uint8_t { kNone, kFound, kUnknown };
/// Looks among the symbols that all of the process can see. `kUnknown`: there is one, and `why` tells what of it we do
/// not know. Takes the dynamic linker's lock.
PythonFound find_python(Python& python, const char*& why);

}  // namespace karst::runtime
