"""The same publisher behind a distributed engine: the engine counts, the privacy kernel stays what it is."""
