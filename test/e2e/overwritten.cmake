# Traces whose oldest calls were overwritten.
e2e_methods(overwritten overwritten)
