# --all: more calls than the memory holds.
e2e_methods(all_calls all_calls)
