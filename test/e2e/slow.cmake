# karst slow and explain: what was slow, and why, on a server with a known mistake.
e2e_methods(slow slow)
