# What calls are given and return: karst run --args, --returns.
e2e_methods(values values values_answers values_generated values_live)
