# What hooks other than the usual one do: --min-duration, --clock thread, karst run --count.
e2e_methods(variants variants_short variants_clock variants_count)
