# Every way out of a function (e2e_methods: torture.cmake; this file comes after it).
e2e_methods(ways_out ways_out ways_out_matrix ways_out_limits ways_out_random
  ways_out_snapshots ways_out_frames ways_out_marks)
