# Code that is annotated for Tracy, compiled with Karst's headers in Tracy's place.
e2e_methods(tracy tracy)
