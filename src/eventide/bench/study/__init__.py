"""What a study is: its file, its cells, its metrics, and what it requires of results.

A study is described before anything runs, and the same description gives the same results.
"""
