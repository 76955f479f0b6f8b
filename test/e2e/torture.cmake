# Torture, faults, exact counts and the behaviour of `karst run`: every test method is a test of its own, so that one
# which needs privileges or a tool that is not there is shown as skipped, with its reason.
e2e_methods(torture torture_threads torture_signals torture_steps torture_forks torture_hosts)
e2e_methods(faults faults)
e2e_methods(counts counts)
e2e_methods(run run)
