# What karst run --count suggests to leave out, on a real program.
e2e_methods(variants count_suggest)
