"""One people, one budget: the account that every publication about the same people draws from."""
