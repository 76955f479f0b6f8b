# Traces of other tools, as karst import takes them.
e2e_methods(import imports)
e2e_methods(imports_xray imports_xray)
e2e_methods(imports_perf imports_perf)
