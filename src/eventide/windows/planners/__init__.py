"""Planners, one per file: which slots of time to release, with which budgets. They never see a count."""
