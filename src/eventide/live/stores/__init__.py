"""Where charges, releases and states are kept: in SQLite, PostgreSQL or memory; and what can be told from them.

One commit holds everything of a step, and one writer holds a store.
"""
