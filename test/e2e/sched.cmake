# Thread states: what karst run --sched records, as root, as anybody, and where nothing works.
e2e_methods(sched sched_states sched_attach sched_snapshots sched_inversion)
