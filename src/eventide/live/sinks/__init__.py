"""Where stored releases go: files, standard output, web addresses; at least once, in order, always the stored bytes.

A sink may import `errors`, `streams`, `faults` and the addresses of brokers in `sources`; it knows nothing of feeds or
mechanisms.
"""
