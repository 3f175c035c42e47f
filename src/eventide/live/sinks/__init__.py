"""Where stored releases go: files, standard output, web addresses; at least once, in order, always the stored bytes.

A sink knows nothing of feeds or mechanisms.
"""
