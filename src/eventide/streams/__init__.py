"""Streams of counts: made by a generator, or read from a file of counts or of events."""
