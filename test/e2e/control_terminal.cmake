# Control from outside on a pseudo-terminal: the choice of a process, and top.
e2e_methods(control control_terminal)
