e2e_methods(processes processes)
