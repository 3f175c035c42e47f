"""Planners, one per file: which slots of time to release, with which budgets.

Planning sees queries and budgets, never a count.
"""
