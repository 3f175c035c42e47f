"""What an event is: the columns of a row, its time and zone, the hash of a person, how a person's events are bounded.

Everything here is raw until the meter has seen it: it is never logged, and kept only while its step is open.
"""
