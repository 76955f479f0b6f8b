// SPDX-License-Identifier: MIT
#include "runtime/interpreters/python_abi.h"

#include <dlfcn.h>

#include "runtime/system/memory.h"

// Null where there is no Python. dlsym() is not asked for what may not be there: it takes memory where it fails, and a
// program's allocator may not have begun.
#pragma weak Py_GetVersion
extern "C" const char* Py_GetVersion();

namespace karst::runtime {
namespace {

template <typename Pointer>
bool find(Pointer& pointer, const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  pointer = reinterpret_cast<Pointer>(found);
  return found != nullptr;
}

bool find_functions(Python& p) {
  return find(p.is_initialized, "Py_IsInitialized") && find(p.add_audit_hook, "PySys_AddAuditHook") &&
         find(p.add_pending_call, "Py_AddPendingCall") &&
         find(p.thread, p.minor >= 13 ? "PyThreadState_GetUnchecked" : "_PyThreadState_UncheckedGet") &&
         find(p.interpreter, "PyInterpreterState_Get") &&
         find(p.set_evaluate, "_PyInterpreterState_SetEvalFrameFunc") &&
         find(p.evaluate, "_PyInterpreterState_GetEvalFrameFunc") &&
         find(p.evaluate_default, "_PyEval_EvalFrameDefault") &&
         find(p.request_extra,
              p.minor >= 12 ? "PyUnstable_Eval_RequestCodeExtraIndex" : "_PyEval_RequestCodeExtraIndex") &&
         find(p.extra, p.minor >= 12 ? "PyUnstable_Code_GetExtra" : "_PyCode_GetExtra") &&
         find(p.set_extra, p.minor >= 12 ? "PyUnstable_Code_SetExtra" : "_PyCode_SetExtra") &&
         find(p.attribute, "PyObject_GetAttrString") && find(p.item, "PyDict_GetItemString") &&
         find(p.encoded, "PyUnicode_AsEncodedString") && find(p.bytes, "PyBytes_AsStringAndSize") &&
         find(p.number, "PyLong_AsLong") && find(p.release, "Py_DecRef") && find(p.fetch_error, "PyErr_Fetch") &&
         find(p.restore_error, "PyErr_Restore") && find(p.is_subtype, "PyType_IsSubtype") &&
         find(p.code_type, "PyCode_Type") && find(p.dict_type, "PyDict_Type") && find(p.text_type, "PyUnicode_Type");
}

/// The number behind "3."; 0: it is another one.
std::uint32_t minor_of(const char* version) {
  if (!starts_with(version, "3.")) return 0;
  std::uint32_t minor = 0;
  for (const char* at = version + 2; *at >= '0' && *at <= '9' && minor < 1000; ++at)
    minor = minor * 10 + static_cast<std::uint32_t>(*at - '0');
  return minor;
}

bool contains(const char* text, const char* part) {
  for (; *text != '\0'; ++text)
    if (starts_with(text, part)) return true;
  return false;
}

/// By Include/cpython/frameobject.h, Include/internal/pycore_frame.h and Include/cpython/pystate.h of each version.
bool know_layout(Python& p) {
  constexpr std::uint32_t kOldest = 9;
  constexpr std::uint32_t kNewest = 13;
  if (p.minor < kOldest || p.minor > kNewest) return false;
  p.code_at = p.minor < 12 ? 32 : 0;
  p.globals_at = p.minor < 11 ? 48 : p.minor == 11 ? 8 : 24;
  p.owner_at = p.minor < 11 ? 0 : p.minor == 11 ? 69 : 70;
  p.c_calls_at = p.minor == 12 ? 36 : p.minor == 13 ? 52 : 0;
  p.is_deep_in_c = p.minor >= 11;
  return true;
}

}  // namespace

PythonFound find_python(Python& p, const char*& why) {
  if (Py_GetVersion == nullptr) return PythonFound::kNone;
  p.version = Py_GetVersion;
  const char* const version = p.version();
  p.minor = minor_of(version);
  if (contains(version, "free-threading")) {
    why = "builds without a global interpreter lock are not known";
    return PythonFound::kUnknown;
  }
  if (!know_layout(p)) {
    why = "versions 3.9 to 3.13 are known";
    return PythonFound::kUnknown;
  }
  why = "it does not have all functions that its version has";
  return find_functions(p) ? PythonFound::kFound : PythonFound::kUnknown;
}

}  // namespace karst::runtime
