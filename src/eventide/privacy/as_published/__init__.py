"""Noise paths of published mechanisms whose proofs do not cover them; used with as_published=True only."""
