# Attaching to processes that are not as others: without a first thread, with children in their memory, with code moved.
e2e_methods(inject inject_odd)
