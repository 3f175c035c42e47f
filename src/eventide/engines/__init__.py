"""The same publisher behind a distributed engine: it counts what one process would count, to the last event."""
