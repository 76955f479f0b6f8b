# karst run --system locks, karst locks: waits for locks.
e2e_methods(locks locks)
