"""The publisher: charge, draw, commit, emit, in this order; then delivery to sinks.

A release leaves only after it is durable, and a committed one is never drawn again.
"""
