# Code of a program's own at enter and leave of functions: karst_handle, karst run --plugin, levels.
e2e_methods(handlers handlers)
