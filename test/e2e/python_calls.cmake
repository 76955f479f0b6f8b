# Functions of Python programs (e2e_methods: CMakeLists.txt).
e2e_methods(python_calls python_calls)
