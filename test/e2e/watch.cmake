# Calls that are watched for and keep themselves.
e2e_methods(watch watch)
