# Random programs (e2e_methods: CMakeLists.txt).
e2e_methods(generated generated)
