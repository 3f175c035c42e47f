"""From events to durable releases: sources, feeds, stores, the publisher, sinks."""
