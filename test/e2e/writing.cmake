# What becomes of a trace when karst is disturbed while it writes it (e2e_methods: torture.cmake).
e2e_methods(writing writing)
