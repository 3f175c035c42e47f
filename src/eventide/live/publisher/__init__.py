"""The publisher: charge, draw, commit, emit, in this order; then delivery to sinks."""
