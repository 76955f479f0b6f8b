# Detectors, and karst check, which asks them.
e2e_methods(check check check_clean)
