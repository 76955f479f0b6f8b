# --all --blocking: nothing is lost, and nobody held for long.
e2e_methods(blocking blocking)
