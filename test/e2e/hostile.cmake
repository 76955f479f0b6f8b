# Traces made to harm their reader, given to the real karst; fuzz/ has the same in one process.
e2e_methods(hostile hostile_traces)
e2e_methods(hostile inject_hostile)
