// SPDX-License-Identifier: MIT
// What a Python function is called: `app.views.Handler.get`, the module's name first, but in the main script.
#pragma once
#include <cstdint>

#include "runtime/interpreters/python_abi.h"

namespace karst::runtime {

/// While it lives the thread has no error set; then it has again what it had.
class PythonErrorKept {
 public:
  explicit PythonErrorKept(const Python& python) : python_(python) { python.fetch_error(&type_, &value_, &traceback_); }
  ~PythonErrorKept() { python_.restore_error(type_, value_, traceback_); }
  PythonErrorKept(const PythonErrorKept&) = delete;
  PythonErrorKept& operator=(const PythonErrorKept&) = delete;

 private:
  const Python& python_;
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

struct PythonFunction {
  std::uint32_t id = 0;       ///< 0: there is none for it
  bool is_generator = false;  ///< or a coroutine: it is evaluated piece by piece
};
/// Of a code object whose frame has these globals. Executes no Python. In a thread that has the interpreter's lock; may
/// leave an error set.
PythonFunction enter_python_function(const Python& python, PyObject* code, PyObject* globals);

}  // namespace karst::runtime
