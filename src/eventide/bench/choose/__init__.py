"""Which mechanism for a stream like this one: a small study on a history, and what it recommends.

Nothing is published and nothing is charged; the history must be one that may be looked at.
"""
