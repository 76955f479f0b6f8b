# karst run --system under seccomp, without descriptors, memory, rights.
e2e_methods(system_hard system_hard)
