"""The privacy kernel: amounts, the ledger, noise, the meter with its measurements, guarantees.

What is made of true counts leaves eventide through the meter alone.
"""
