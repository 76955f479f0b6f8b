# Switching while it runs (e2e_methods: torture.cmake).
e2e_methods(live live_toggle live_thread)
