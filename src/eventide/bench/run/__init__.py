"""Run a study: cells in batches on several processes, a journal for interruptions, results in one file."""
