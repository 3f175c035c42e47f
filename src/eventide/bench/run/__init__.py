"""Run a study: cells in batches on several processes, a journal for interruptions, results in one file.

A cell draws the same noise alone as together with others.
"""
