# What becomes of a trace when karst is disturbed while it writes it (e2e_methods: torture.cmake).
e2e_methods(writing writing)
# Where outputs go, and who may lead them elsewhere.
e2e_methods(outputs outputs)
