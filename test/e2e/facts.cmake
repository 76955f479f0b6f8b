# Answers about traces, programs and processes that are relations: table, CSV and JSON of each say the same.
e2e_methods(facts facts)
