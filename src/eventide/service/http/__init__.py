"""Requests and answers: who may ask, what is taken in, what is shown; and the dashboard's page.

Readers see what is committed, byte for byte.
"""
