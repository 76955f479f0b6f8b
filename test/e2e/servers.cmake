# karst run --system with all that it has, on Debian's servers under load.
e2e_methods(servers servers)
