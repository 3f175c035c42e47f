"""Complete files of events, read block by block; a row means the same to the publisher, a study and an engine."""
