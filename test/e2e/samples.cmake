# karst run --sample.
e2e_methods(samples samples)
