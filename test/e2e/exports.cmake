# Exports against other readers of their formats: callgrind_annotate, and events replayed.
e2e_methods(exports exports)
