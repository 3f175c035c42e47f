"""Where events come from: one way in per file, all with the same few methods."""
