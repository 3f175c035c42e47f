"""A plan at work: ticks in, private answers out; what is kept of counts are the sealed sums of open slots."""
