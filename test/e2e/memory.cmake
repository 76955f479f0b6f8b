# karst run --system memory, karst memory.
e2e_methods(memory memory)
