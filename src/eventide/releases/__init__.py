"""How releases, answers and totals are written: lines of JSON, CSV and Parquet, wide or long. Nothing here is raw."""
