# Who talks to whom between karst and traced processes. Attacks by another user need root, to become that user.
e2e_methods(peers peers)
