"""A plan at work: ticks in, private answers out, each when its window ends.

True counts go to the meter at once; what is kept of them are the sealed sums of open slots.
"""
