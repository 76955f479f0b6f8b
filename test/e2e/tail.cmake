# karst tail and karst run --live: calls as text while they are made.
e2e_methods(tail tail)
