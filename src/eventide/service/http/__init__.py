"""Requests and answers: who may ask, what is taken in, what is shown; readers see only what is committed."""
