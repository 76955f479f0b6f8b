# Probes of sys/sdt.h.
e2e_methods(probes probes)
