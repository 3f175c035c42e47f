"""The report of a study: one page of figures and sentences that loads nothing from anywhere.

Numbers first, drawing apart: what a sentence says is computed where no page is drawn.
"""
