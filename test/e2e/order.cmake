# karst export --to order: linkers lay out a program's functions as it says; nm is asked where they lie.
e2e_methods(order order)
