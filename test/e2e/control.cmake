# Control from outside: each test method is a test of its own, so that one that needs root or gdb is shown as skipped.
e2e_methods(control control)
