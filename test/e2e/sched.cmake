# Thread states: what karst run --sched records, as root, as anybody, and where nothing works.
e2e_methods(sched sched_states sched_attach sched_snapshots sched_inversion)
# Their threads go before all others of the CPU, those of each other too.
foreach(method test_ftrace test_ftrace_of_all_cpus test_perf_events_know_the_programs_own_threads)
  set_tests_properties(sched_inversion.${method} PROPERTIES RESOURCE_LOCK real_time_priorities)
endforeach()
