# What a program sees of itself, and of tools around it, with Karst and without (manners/README.md).
e2e_methods(manners manners)
