# The compiler wrappers as people use them, and programs that they build (e2e_methods: torture.cmake).
e2e_methods(wrapper matrix matrix_builds wrapper_clang wrapper_commands wrapper_links wrapper_objects wrapper_registers wrapper_flags)
