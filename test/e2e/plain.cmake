# Programs that were not built for Karst, patched as they are loaded.
e2e_methods(plain plain plain_jumps)
