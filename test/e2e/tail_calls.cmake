# Calls that end by a tail call last until their callee returns.
e2e_methods(tail_calls tail_calls)
