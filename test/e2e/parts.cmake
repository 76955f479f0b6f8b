# karst cut, merge and pack: parts of traces, several in one, and one made smaller.
e2e_methods(parts parts)
