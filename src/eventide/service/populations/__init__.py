"""Several streams of the same people: what each claims of their common budget over time; in doubt it waits."""
