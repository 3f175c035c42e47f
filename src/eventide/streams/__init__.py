"""Streams of counts: made by a generator, read from a file; and the files releases are written to.

May import `errors` and `arrays`, nothing else of eventide.
"""
