// A Python extension: count(n) calls traced functions of its own, and back into the interpreter.
#include <Python.h>

__attribute__((noinline)) long twice(long n) {
  __asm__ volatile("" : "+r"(n));
  return 2 * n;
}

static PyObject* count(PyObject* self, PyObject* argument) {
  (void)self;
  const long n = PyLong_AsLong(argument);
  long sum = 0;
  for (long i = 0; i < n; ++i) sum += twice(i);
  return PyLong_FromLong(sum);
}

static PyMethodDef methods[] = {{"count", count, METH_O, "sum of doubled numbers below n"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "extension", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_extension(void) { return PyModule_Create(&definition); }
