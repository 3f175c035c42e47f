"""How things are shown: drawings and their painter, cards for notebooks, the frame of pages.

Shows what it is given and asks nobody for more: what may be seen is decided by whoever calls. Nothing shown loads
anything from anywhere, and texts are escaped in one place.
"""
