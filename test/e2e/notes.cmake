# What programs say of themselves: karst.h's notes, and karst notes.
e2e_methods(notes notes)
