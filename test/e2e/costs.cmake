# Times without the tracer, and how much tracing took.
e2e_methods(costs costs)
