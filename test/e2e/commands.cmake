# Commands that became part of others, under their old and their new names.
e2e_methods(commands commands)
