# Programs with a second libc, in a namespace by dlmopen().
e2e_methods(namespaces namespaces)
