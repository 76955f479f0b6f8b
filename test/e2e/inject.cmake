# Attaching to programs that run without libkarst (e2e_methods: CMakeLists.txt).
e2e_methods(inject inject)
