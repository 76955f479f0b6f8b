# karst run --sample, karst attach --sample.
e2e_methods(samples samples)
e2e_methods(samples_attach samples_attach)
