"""Which mechanism for a stream like this one: a small study on a history that may be looked at, and its advice."""
