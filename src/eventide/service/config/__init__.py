"""The configuration of a service: read from TOML and checked as a whole, with a line number in each complaint."""
