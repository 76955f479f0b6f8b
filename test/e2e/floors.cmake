# Where one folder of the runtime asks another one for something.
e2e_methods(floors floors)
