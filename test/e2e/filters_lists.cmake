# Leaving functions out (e2e_methods: torture.cmake).
e2e_methods(filters filters_lists)
