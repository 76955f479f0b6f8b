# karst cut and karst merge: parts of traces, and several in one.
e2e_methods(parts parts)
