"""The same publisher behind a distributed engine: the engine counts, the privacy kernel stays what it is.

What an engine counts is what one process would count, to the last event.
"""
