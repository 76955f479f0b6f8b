# What is left of programs that ended badly, and where those stand that hang.
e2e_methods(recover recover)
