# Modules that come and go, clang's sleds, -finstrument-functions, static programs (e2e_methods: torture.cmake).
e2e_methods(modules modules_loading modules_methods modules_jit)
