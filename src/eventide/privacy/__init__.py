"""The privacy kernel: amounts, the ledger, noise, the meter with its five measurements, guarantees.

Nothing private leaves eventide except through the meter. Imports numpy, `errors` and `arrays`, never numba; `display`
only to show budgets.
"""
