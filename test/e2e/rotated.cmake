e2e_methods(rotated rotated)
