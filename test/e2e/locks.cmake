# karst run --system locks, karst locks: waits for locks.
e2e_methods(locks locks)
e2e_methods(locks_guest locks_guest)
e2e_methods(locks_holds locks_holds)
e2e_methods(locks_named locks_named)
e2e_methods(locks_servers locks_servers)
e2e_methods(locks_watch locks_watch)
