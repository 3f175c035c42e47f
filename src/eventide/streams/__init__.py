"""Streams of counts: made by a generator, read from a file; and the files releases are written to."""
