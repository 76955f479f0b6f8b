// SPDX-License-Identifier: MIT
#include "runtime/interpreters/python.h"

#include <dlfcn.h>
#include <pthread.h>

#include "runtime/interpreters/early_audit_hook.h"
#include "runtime/interpreters/python_abi.h"
#include "runtime/interpreters/python_names.h"
#include "runtime/interpreters/stack_room.h"
#include "runtime/modules/named_functions.h"
#include "runtime/recording/mode.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"

namespace karst::runtime {
namespace {

Python g_python;
PythonFound g_found;
std::ptrdiff_t g_extra = -1;   // of code objects, in all interpreters
std::uint32_t g_beyond_depth;  // threads that have switched our evaluation off for what they call
bool g_said_deep;
bool g_said_taken;
EarlyAuditHook g_early;

/// A word of the first interpreter's state, which has `usual` without us.
struct Place {
  std::uintptr_t* word;
  std::uintptr_t usual;
};
Place g_place;
PyInterpreter* g_first;

PyObject* evaluate(PyThread* thread, PyFrame* frame, int is_thrown);

void set_evaluate(PyEvaluate evaluation) { g_python.set_evaluate(g_python.interpreter(), evaluation); }

/// A code object's word: a bit that is always set, one for generators, and its id.
void* word_of(PythonFunction function) {
  return reinterpret_cast<void*>(std::uintptr_t{function.id} << 2 | (function.is_generator ? 2U : 0U) | 1U);
}

/// The id of what is evaluated; 0: nothing that is to be recorded.
std::uint32_t id_of(PyFrame* frame) {
  PyObject* const code = g_python.code_of(frame);
  if (code == nullptr || Python::type_of(code) != g_python.code_type) return 0;
  void* word = nullptr;
  g_python.extra(code, g_extra, &word);
  if (word == nullptr) {
    const PythonErrorKept kept(g_python);
    word = word_of(enter_python_function(g_python, code, g_python.globals_of(frame)));
    g_python.set_extra(code, g_extra, word);
  }
  const auto bits = reinterpret_cast<std::uintptr_t>(word);
  return (bits & 2) != 0 && g_python.makes_generator(frame) ? 0 : static_cast<std::uint32_t>(bits >> 2);
}

/// The frame's evaluation itself. From 3.12 on it counts itself among C's calls, as two (PY_EVAL_C_STACK_UNITS), also
/// where C is called only because of us: so it is given two more.
PyObject* go_on(PyThread* thread, PyFrame* frame, int is_thrown) {
  if (g_python.c_calls_at == 0) return g_python.evaluate_default(thread, frame, is_thrown);
  int& c_calls = *reinterpret_cast<int*>(reinterpret_cast<char*>(thread) + g_python.c_calls_at);
  constexpr int kUnits = 2;
  c_calls += kUnits;
  PyObject* const result = g_python.evaluate_default(thread, frame, is_thrown);
  c_calls -= kUnits;
  return result;
}

/// Without us calls of Python functions take no stack of C, so a program may call deeper than its stack is large. What
/// this frame calls is evaluated without us, by all threads as long.
PyObject* go_on_without_us(PyThread* thread, PyFrame* frame, int is_thrown) {
  if (!__atomic_exchange_n(&g_said_deep, true, __ATOMIC_RELAXED))
    Message().text(
        "a thread calls Python functions so deeply that half of its stack is used: what is called from there "
        "is not recorded");
  __atomic_add_fetch(&g_beyond_depth, 1, __ATOMIC_ACQ_REL);
  set_evaluate(g_python.evaluate_default);
  PyObject* const result = go_on(thread, frame, is_thrown);
  if (is_switched_on()) set_evaluate(evaluate);
  __atomic_sub_fetch(&g_beyond_depth, 1, __ATOMIC_ACQ_REL);
  return result;
}

PyObject* evaluate(PyThread* thread, PyFrame* frame, int is_thrown) {
  if (!is_switched_on()) return go_on(thread, frame, is_thrown);
  const std::uint32_t id = id_of(frame);
  const bool has_room = !g_python.is_deep_in_c || has_stack_room();
  karst_api_enter(id);
  PyObject* const result = has_room ? go_on(thread, frame, is_thrown) : go_on_without_us(thread, frame, is_thrown);
  if (result == nullptr)
    exit_by_exception(id, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  else
    karst_api_exit(id);
  return result;
}

/// Where it says who evaluates its frames: behind the begin of its state, at the first word that is our function.
Place find_place(PyInterpreter* interpreter) {
  constexpr std::uint32_t kMost = 64 << 10;
  auto* const words = reinterpret_cast<std::uintptr_t*>(interpreter);
  const auto ours = reinterpret_cast<std::uintptr_t>(&evaluate);
  for (std::uint32_t i = 0; i < kMost; ++i) {
    if (words[i] != ours) continue;
    g_python.set_evaluate(interpreter, g_python.evaluate_default);
    const Place place{words + i, words[i]};
    g_python.set_evaluate(interpreter, evaluate);
    return place;
  }
  return {};
}

/// In a thread that has the interpreter's lock.
void install() {
  if (load(g_beyond_depth) != 0) return;
  PyInterpreter* const interpreter = g_python.interpreter();
  const PyEvaluate now = g_python.evaluate(interpreter);
  if (now == evaluate) return;
  if (now != g_python.evaluate_default) {
    if (!g_said_taken) Message().text("Python's functions are not recorded: another tool evaluates its frames");
    g_said_taken = true;
    return;
  }
  if (interpreter == g_first) return python_is_switched(is_switched_on());
  const std::ptrdiff_t extra = g_python.request_extra(nullptr);
  if (extra < 0 || (g_extra >= 0 && extra != g_extra)) return;
  g_extra = extra;
  g_python.set_evaluate(interpreter, evaluate);
  if (g_place.word == nullptr) {
    g_place = find_place(interpreter);
    g_first = interpreter;
  }
  if (!is_switched_on()) g_python.set_evaluate(interpreter, g_python.evaluate_default);
}

/// Audit events come from the first import on, in each interpreter of the process.
int on_audit(const char*, PyObject*, void* early) {
  if (g_python.thread() == nullptr || (early != nullptr && !g_early.is_there())) return 0;
  if (early != nullptr) {
    const PythonErrorKept kept(g_python);
    g_early.take_out();
    g_python.add_audit_hook(on_audit, nullptr);
  }
  install();
  return 0;
}

int on_pending_call(void*) {
  install();
  return 0;
}

void* ask_for_call(void*) {
  g_python.add_pending_call(on_pending_call, nullptr);
  return nullptr;
}

/// In a thread of its own: this one may have been stopped anywhere, also where the interpreter holds a lock.
void ask_running_python() {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  using Detach = int (*)(pthread_t);
  const auto create = reinterpret_cast<Create>(dlsym(RTLD_DEFAULT, "pthread_create"));
  const auto detach = reinterpret_cast<Detach>(dlsym(RTLD_DEFAULT, "pthread_detach"));
  pthread_t thread{};
  if (create != nullptr && detach != nullptr && create(&thread, nullptr, ask_for_call, nullptr) == 0) detach(thread);
}

}  // namespace

bool has_python() {
  if (g_found != PythonFound::kNone) return g_found == PythonFound::kFound;
  const char* why = nullptr;
  g_found = find_python(g_python, why);
  if (g_found == PythonFound::kUnknown) {
    const char* const version = g_python.version();
    std::uint32_t size = 0;
    while (version[size] != '\0' && version[size] != ' ') ++size;
    Message().text("functions of Python ").text(version, size).text(" are not recorded: ").text(why);
  }
  return g_found == PythonFound::kFound;
}

// By a store alone, as who switches is no thread of Python's.
void python_is_switched(bool on) {
  if (g_place.word == nullptr || g_python.is_initialized() == 0) return;
  const auto ours = reinterpret_cast<std::uintptr_t>(&evaluate);
  exchange_if(*g_place.word, on ? g_place.usual : ours, on ? ours : g_place.usual);
}

void follow_python() {
  announce(MadeUp::kPython);
  if (g_python.is_initialized() != 0) return ask_running_python();
  if (!g_early.add(g_python, on_audit))
    Message().text("Python's functions are not recorded: its list of audit hooks is not where it should be");
}

}  // namespace karst::runtime
