"""Where charges, releases and states are kept: SQLite, PostgreSQL or memory; and what can be told from them."""
