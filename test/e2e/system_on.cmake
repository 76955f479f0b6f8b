# karst on --system, karst attach --system: what a process that runs asks of its system.
e2e_methods(system_on system_on)
e2e_methods(system_on system_on_hosts)
e2e_methods(system_on system_on_allocators)
