"""What a study is: its file, its cells, its metrics, and what it requires of results."""
