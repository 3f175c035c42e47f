"""Mechanisms: when to look, with how much budget, and what to release in between.

One published mechanism per file; `base` is the frame they share, `check` the contract they all pass. A mechanism never
sees a true count: it hands sealed steps to the meter.
"""
