# Names and inlined functions of programs whose debug information lies apart, through `karst run` (e2e_methods: torture.cmake).
e2e_methods(symbols symbols_debug symbols_replaced)
