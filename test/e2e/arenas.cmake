# Commands beside processes with hostile arenas (e2e_methods: torture.cmake).
e2e_methods(arenas arenas)
