# Exports against other readers of their formats: callgrind_annotate, protoc, and events replayed.
e2e_methods(exports exports exports_firefox exports_fxt exports_otlp exports_pprof exports_tables)
