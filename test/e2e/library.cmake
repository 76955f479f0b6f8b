# karst run --library, karst attach --library: functions of libraries without sleds.
e2e_methods(library library)
