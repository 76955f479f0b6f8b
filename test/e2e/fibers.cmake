# Stacks that a program switches itself: karst.h's marks of fibers.
e2e_methods(fibers fibers)
