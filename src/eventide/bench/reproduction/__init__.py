"""What the w-event benchmark (Schaeler et al., 2022) found and published, looked for in our own results.

This is about the figures of others: nothing else in eventide depends on it.
"""
