"""From closed steps to durable releases: sources, feeds, stores, the publisher, sinks."""
