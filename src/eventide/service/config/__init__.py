"""The configuration of a service: its tables and fields, read from TOML with a line number in each complaint.

A configuration is checked as a whole before anything starts.
"""
