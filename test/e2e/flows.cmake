# Flows that programs say, and coroutines, and karst flows.
e2e_methods(flows flows)
