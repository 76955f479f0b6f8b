# karst run --usage: what processes and the machine use beside the calls.
e2e_methods(usage usage)
