"""From events or counts to the counts of one closed step after another; everything raw stays behind a feed."""
