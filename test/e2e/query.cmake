# Traces asked in SQL: karst query.
e2e_methods(query query)
e2e_methods(query query_page)
e2e_methods(query query_prompt)
