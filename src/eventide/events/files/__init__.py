"""Complete files of events, read block by block: CSV, JSON lines, Parquet.

A row means the same whoever reads it: the publisher, a study or an engine.
"""
