"""Several streams of the same people: what each claims of their common budget, over time.

In doubt a stream waits: no window of a population is ever over its epsilon.
"""
