# A budget on loads that are hard for it: what is rare, long, or to be kept is whole whatever happens.
e2e_methods(budget budget)
