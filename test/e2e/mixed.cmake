# Programs that were built for tracing in part.
e2e_methods(mixed mixed)
