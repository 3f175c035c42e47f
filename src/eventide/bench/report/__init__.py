"""The report of a study: one page of figures and sentences; numbers are computed first, and drawn apart."""
