"""How releases, answers and totals are written: lines of JSON, CSV, Parquet, wide or long.

Nothing in here is raw.
"""
