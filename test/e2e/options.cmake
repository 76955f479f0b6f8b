# KARST_OPTIONS and the command line: two ways to say the same.
e2e_methods(options options)
