# Programs that end badly, by chance: the short form of script/soak faults.
e2e_methods(survival survival)
